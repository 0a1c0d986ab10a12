package output

import (
	"fmt"
	"io"
	"strings"
)

// ForTerminal is what of a model's text goes to a terminal: no control
// characters, which could do anything there. Files and pipes get all of it.
func ForTerminal(w io.Writer, text string) string {
	if !IsTerminal(w) {
		return text
	}
	return WithoutControls(text)
}

// WithoutControls leaves out control characters other than tabs and newlines.
func WithoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// OneLine leaves out what clients could play tricks on a terminal with.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, WithoutControls(text))
}

// Printable is one line without control characters: metadata comes from
// outside and goes to a terminal.
func Printable(v any) string {
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
