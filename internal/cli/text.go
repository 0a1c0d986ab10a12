package cli

import (
	"fmt"
	"io"
	"strings"
)

// forTerminal is what of a model's text goes to a terminal: no control
// characters, which could do anything there. Files and pipes get all of it.
func forTerminal(w io.Writer, text string) string {
	if !isTerminal(w) {
		return text
	}
	return withoutControls(text)
}

func withoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// oneLine leaves out what clients could play tricks on a terminal with.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, withoutControls(text))
}

// printable is one line without control characters: metadata comes from
// outside and goes to a terminal.
func printable(v any) string {
	s := fmt.Sprintf("%v", v)
	if r := []rune(s); len(r) > 100 {
		s = string(r[:100]) + " ..."
	}
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
