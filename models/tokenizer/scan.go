package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// class is a kind of character that the common patterns tell apart.
type class uint8

const (
	other   class = iota // neither of the following
	letter               // \p{L}
	number               // \p{N}
	space                // \s without CR and LF
	newline              // CR or LF
	end                  // no character left
)

// ascii holds the classes of the ASCII characters.
var ascii = asciiClasses()

func asciiClasses() (table [utf8.RuneSelf]class) {
	for c := range table {
		table[c] = classOf(rune(c))
	}
	return table
}

func classOf(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// peek returns the class and the size in bytes of the character at i.
func peek(text string, i int) (class, int) {
	if i >= len(text) {
		return end, 0
	}
	if c := text[i]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	return classOf(r), n
}

// run returns the end of the characters from i on whose class is a or b.
func run(text string, i int, a, b class) int {
	for {
		c, n := peek(text, i)
		if c != a && c != b {
			return i
		}
		i += n
	}
}

// contraction returns the size of an English ending ('s 't 're 've 'm 'll 'd) at
// the start of text, 0 for none.
func contraction(text string, anyCase bool) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	at := func(i int) byte {
		if i >= len(text) {
			return 0
		}
		c := text[i]
		if anyCase && 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	}
	switch a, b := at(1), at(2); {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return 2
	case a == 'r' && b == 'e' || a == 'v' && b == 'e' || a == 'l' && b == 'l':
		return 3
	}
	return 0
}

// spaces returns the size of the word that a run of white space makes: all of it at the end of the text. Elsewhere it
// is all but the last character, which belongs to the next word, unless it is the only one. [\s+(?!\S)|\s+]
func spaces(text string) int {
	last, i := 0, 0
	for {
		c, n := peek(text, i)
		if c != space && c != newline {
			if c == end || last == 0 {
				return i
			}
			return last
		}
		last = i
		i += n
	}
}

// nextGPT2 matches gpt2Words.
func nextGPT2(text string) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	c, n := peek(text, 0)
	lead := 0
	if text[0] == ' ' {
		lead = 1
		c, n = peek(text, 1)
	}
	switch c {
	case letter, number, other:
		return run(text, lead+n, c, c)
	}
	return spaces(text)
}

// nextLlama3 matches llama3Words, nextQwen2 matches qwen2Words: numbers of
// three digits, numbers of one.
func nextLlama3(text string) int { return nextModern(text, 3) }
func nextQwen2(text string) int  { return nextModern(text, 1) }

func nextModern(text string, digits int) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	c, n := peek(text, 0)
	switch c {
	case letter:
		return run(text, n, letter, letter)
	case number:
		i := n
		for range digits - 1 {
			c, n := peek(text, i)
			if c != number {
				break
			}
			i += n
		}
		return i
	}
	next, m := peek(text, n)
	if next == letter && c != newline {
		return run(text, n+m, letter, letter)
	}
	if c == other {
		return run(text, run(text, n, other, other), newline, newline)
	}
	if text[0] == ' ' && next == other {
		return run(text, run(text, n+m, other, other), newline, newline)
	}
	// White space up to its last line break, where it has one.
	if i := lastNewline(text); i > 0 {
		return i
	}
	return spaces(text)
}

// lastNewline returns the end of the last line break in the white space that text
// begins with, 0 for none. [\s*[\r\n]+]
func lastNewline(text string) (at int) {
	for i := 0; ; {
		c, n := peek(text, i)
		if c != space && c != newline {
			return at
		}
		i += n
		if c == newline {
			at = i
		}
	}
}
