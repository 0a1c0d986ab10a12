package output

import (
	"fmt"
	"io"
	"strings"
)

// ForTerminal removes control characters from a model's text if w is a terminal,
// where they could do anything. Files and pipes get the whole text.
func ForTerminal(w io.Writer, text string) string {
	if !IsTerminal(w) {
		return text
	}
	return WithoutControls(text)
}

// WithoutControls removes control characters other than tabs and newlines.
func WithoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// OneLine removes control characters and line breaks.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, WithoutControls(text))
}

// Printable is v as one short line without control characters: metadata comes from
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
