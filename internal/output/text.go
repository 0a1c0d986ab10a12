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

// Printable returns v as one short line without control characters: metadata comes from
// outside and goes to a terminal.
func Printable(v any) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, Shortened(fmt.Sprintf("%v", v), 100))
}

// Shortened returns text of at most n runes, and a mark where more was left out.
func Shortened(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n]) + " ..."
	}
	return text
}
