package grammar

import (
	"fmt"
	"strings"
)

// Expected describes in words what may follow s, for errors.
func (s *State) Expected() string {
	if text := s.Forced(); len(text) > 0 {
		return fmt.Sprintf("%q", text)
	}
	s.g.lock(nil)
	var ranges []string
	for lo := 0; lo < 256; lo++ {
		hi := lo
		for hi < 256 && s.after(byte(hi)) != s.g.refused {
			hi++
		}
		switch {
		case hi > lo+2:
			ranges = append(ranges, fmt.Sprintf("%s to %s", byteName(lo), byteName(hi-1)))
		case hi > lo:
			for b := lo; b < hi; b++ {
				ranges = append(ranges, byteName(b))
			}
		}
		lo = max(lo, hi)
	}
	s.g.unlock()
	if s.accepts {
		ranges = append(ranges, "the end")
	}
	return strings.Join(ranges, ", ")
}

func byteName(b int) string {
	if b < 0x80 {
		return fmt.Sprintf("%q", rune(b))
	}
	return fmt.Sprintf("byte %#x", b)
}
