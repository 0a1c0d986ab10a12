package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// tokenKind tells tokens apart.
type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokText
	tokVarBegin   // {{
	tokVarEnd     // }}
	tokBlockBegin // {%
	tokBlockEnd   // %}
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

// token is one lexical element; text is its value, unescaped for a string.
type token struct {
	kind tokenKind
	text string
	line int
}

// SyntaxError says where a template breaks the language's rules.
type SyntaxError struct {
	Line    int
	Message string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("jinja: line %d: %s", e.Line, e.Message)
}

// lexer cuts a template into tokens.
type lexer struct {
	src       string
	pos       int
	line      int
	lineStart bool // the text at pos begins a line, as far as lstrip_blocks cares
	tokens    []token
}

// lex gives the tokens of src, the last of which is tokEOF.
func lex(src string) ([]token, error) {
	src = strings.ReplaceAll(src, "\r\n", "\n")
	src = strings.ReplaceAll(src, "\r", "\n")
	// keep_trailing_newline is off in Jinja2.
	src = strings.TrimSuffix(src, "\n")
	l := &lexer{src: src, line: 1, lineStart: true}
	for l.pos < len(l.src) {
		if err := l.next(); err != nil {
			return nil, err
		}
	}
	l.emit(tokEOF, "")
	return l.tokens, nil
}

func (l *lexer) emit(kind tokenKind, text string) {
	l.tokens = append(l.tokens, token{kind, text, l.line})
}

func (l *lexer) fail(format string, args ...any) error {
	return &SyntaxError{l.line, fmt.Sprintf(format, args...)}
}

// advance moves to position to, counting lines.
func (l *lexer) advance(to int) {
	l.line += strings.Count(l.src[l.pos:to], "\n")
	l.pos = to
}

// next reads the text up to the next tag, and the tag.
func (l *lexer) next() error {
	tag := findTag(l.src, l.pos)
	text := l.src[l.pos:tag]
	if tag == len(l.src) {
		l.text(text)
		l.advance(tag)
		return nil
	}
	kind := l.src[tag+1]
	sign := byte(0)
	if tag+2 < len(l.src) && (l.src[tag+2] == '-' || l.src[tag+2] == '+') {
		sign = l.src[tag+2]
	}
	switch {
	case sign == '-':
		text = strings.TrimRight(text, whitespace)
	case sign != '+' && kind != '{':
		text = l.stripLine(text)
	}
	l.text(text)
	l.advance(tag + 2)
	if sign != 0 {
		l.pos++
	}
	switch kind {
	case '#':
		return l.comment()
	case '{':
		l.emit(tokVarBegin, "")
		return l.inside(tokVarEnd, "}}")
	}
	if raw, ok := l.rawBegin(); ok {
		return l.raw(raw)
	}
	l.emit(tokBlockBegin, "")
	return l.inside(tokBlockEnd, "%}")
}

// whitespace lists the characters that Python's str.strip removes, within ASCII.
const whitespace = " \t\n\r\v\f"

// findTag returns the position of the next {{, {% or {#.
func findTag(src string, from int) int {
	for i := from; ; i++ {
		n := strings.IndexByte(src[i:], '{')
		if n < 0 || i+n+1 >= len(src) {
			return len(src)
		}
		i += n
		if c := src[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
	}
}

// stripLine takes the blanks off between the start of a line and a block.
func (l *lexer) stripLine(text string) string {
	n := strings.LastIndexByte(text, '\n') + 1
	if (n > 0 || l.lineStart) && strings.TrimLeft(text[n:], whitespace) == "" {
		return text[:n]
	}
	return text
}

func (l *lexer) text(text string) {
	if text != "" {
		l.emit(tokText, text)
	}
}

// closed does what follows the end of a tag: a sign '-' takes all white space
// off, trim_blocks one newline after blocks and comments.
func (l *lexer) closed(sign byte, block bool) {
	to := l.pos
	switch {
	case sign == '-':
		to += len(l.src[to:]) - len(strings.TrimLeft(l.src[to:], whitespace))
	case sign != '+' && block && strings.HasPrefix(l.src[to:], "\n"):
		to++
	}
	l.advance(to)
	l.lineStart = to > 0 && l.src[to-1] == '\n'
}

func (l *lexer) comment() error {
	n := strings.Index(l.src[l.pos:], "#}")
	if n < 0 {
		return l.fail("comment without end")
	}
	sign := byte(0)
	if n > 0 {
		sign = l.src[l.pos+n-1]
	}
	l.advance(l.pos + n + 2)
	l.closed(sign, true)
	return nil
}

// blockWord matches a block that holds nothing but word, from after its {%:
// the length up to after its %} and the sign before that.
func blockWord(s, word string) (n int, sign byte, ok bool) {
	rest := strings.TrimLeft(s, whitespace)
	if !strings.HasPrefix(rest, word) {
		return 0, 0, false
	}
	rest = strings.TrimLeft(rest[len(word):], whitespace)
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		sign, rest = rest[0], rest[1:]
	}
	if !strings.HasPrefix(rest, "%}") {
		return 0, 0, false
	}
	return len(s) - len(rest) + 2, sign, true
}

func (l *lexer) rawBegin() (n int, ok bool) {
	n, _, ok = blockWord(l.src[l.pos:], "raw")
	return n, ok
}

// raw emits what lies up to {% endraw %} as text.
func (l *lexer) raw(n int) error {
	_, sign, _ := blockWord(l.src[l.pos:], "raw")
	l.advance(l.pos + n)
	l.closed(sign, false) // Jinja2 keeps the newline here
	for from := l.pos; ; {
		n := strings.Index(l.src[from:], "{%")
		if n < 0 {
			return l.fail("raw without endraw")
		}
		body, tail := l.src[l.pos:from+n], l.src[from+n+2:]
		before := byte(0)
		if tail != "" && (tail[0] == '-' || tail[0] == '+') {
			before, tail = tail[0], tail[1:]
		}
		size, sign, ok := blockWord(tail, "endraw")
		if !ok {
			from += n + 2
			continue
		}
		switch before {
		case '-':
			body = strings.TrimRight(body, whitespace)
		case 0:
			body = l.stripLine(body)
		}
		l.text(body)
		l.advance(len(l.src) - len(tail) + size)
		l.closed(sign, true)
		return nil
	}
}

// maxName is the length of the longest name: each use of one is a search for it.
const maxName = 256

// operators, longest first.
var operators = []string{
	"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=",
	"(", ")", "[", "]", "{", "}", ".", ",", ":", "|",
}

// inside reads the tokens of a tag up to its end.
func (l *lexer) inside(end tokenKind, mark string) error {
	depth := 0 // of brackets, within which }} does not end a variable
	for {
		l.advance(l.pos + len(l.src[l.pos:]) - len(strings.TrimLeft(l.src[l.pos:], whitespace)))
		rest := l.src[l.pos:]
		if rest == "" {
			return l.fail("a tag has no %s", mark)
		}
		if depth == 0 {
			sign := byte(0)
			if len(rest) > 1 && (rest[0] == '-' || rest[0] == '+') && strings.HasPrefix(rest[1:], mark) {
				sign, rest = rest[0], rest[1:]
			}
			if strings.HasPrefix(rest, mark) {
				l.emit(end, "")
				l.advance(len(l.src) - len(rest) + len(mark))
				l.closed(sign, end == tokBlockEnd)
				return nil
			}
		}
		c := rest[0]
		switch {
		case c == '"' || c == '\'':
			if err := l.str(c); err != nil {
				return err
			}
		case '0' <= c && c <= '9':
			l.number()
		case isNameByte(c):
			n := 1
			for n < len(rest) && (isNameByte(rest[n]) || '0' <= rest[n] && rest[n] <= '9') {
				n++
			}
			if n > maxName {
				return l.fail("a name of %d bytes, at most %d are allowed", n, maxName)
			}
			l.emit(tokName, rest[:n])
			l.pos += n
		default:
			op := operatorAt(rest)
			switch op {
			case "":
				r, _ := utf8.DecodeRuneInString(rest)
				return l.fail("unexpected character %q", r)
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			}
			l.emit(tokOp, op)
			l.pos += len(op)
		}
	}
}

func operatorAt(s string) string {
	for _, op := range operators {
		if strings.HasPrefix(s, op) {
			return op
		}
	}
	return ""
}

func isNameByte(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf
}
