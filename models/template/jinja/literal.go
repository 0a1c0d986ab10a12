package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// number reads an integer or a float. Underscores may separate digits.
func (l *lexer) number() {
	rest := l.src[l.pos:]
	n, kind := digits(rest), tokInt
	if n < len(rest)-1 && rest[n] == '.' && isDigit(rest[n+1]) {
		kind = tokFloat
		n += 1 + digits(rest[n+1:])
	}
	if n < len(rest)-1 && (rest[n] == 'e' || rest[n] == 'E') {
		exp := n + 1
		if rest[exp] == '+' || rest[exp] == '-' {
			exp++
		}
		if d := digits(rest[min(exp, len(rest)):]); d > 0 {
			kind = tokFloat
			n = exp + d
		}
	}
	l.emit(kind, strings.ReplaceAll(rest[:n], "_", ""))
	l.pos += n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func digits(s string) (n int) {
	for n < len(s) && (isDigit(s[n]) || s[n] == '_') {
		n++
	}
	return n
}

// str reads a string literal with Python's escapes.
func (l *lexer) str(quote byte) error {
	var b strings.Builder
	for i := l.pos + 1; i < len(l.src); {
		switch c := l.src[i]; c {
		case quote:
			l.emit(tokString, b.String())
			l.advance(i + 1)
			return nil
		case '\\':
			n, err := l.escape(&b, l.src[i:])
			if err != nil {
				return err
			}
			i += n
		default:
			b.WriteByte(c)
			i++
		}
	}
	return l.fail("string without end")
}

// simpleEscapes are the escapes of one letter.
var simpleEscapes = map[byte]string{
	'\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\n': "",
}

// escape writes the character that the escape at the start of s stands for
// and gives its length. An unknown escape stands for itself.
func (l *lexer) escape(b *strings.Builder, s string) (int, error) {
	if len(s) < 2 {
		return 0, l.fail("string without end")
	}
	if text, ok := simpleEscapes[s[1]]; ok {
		b.WriteString(text)
		return 2, nil
	}
	if '0' <= s[1] && s[1] <= '7' {
		n, code := 1, rune(0)
		for ; n < min(len(s), 4) && '0' <= s[n] && s[n] <= '7'; n++ {
			code = code*8 + rune(s[n]-'0')
		}
		b.WriteRune(code)
		return n, nil
	}
	size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
	if size == 0 {
		b.WriteByte('\\')
		return 1, nil
	}
	if len(s) < 2+size {
		return 0, l.fail("string without end")
	}
	code, err := strconv.ParseUint(s[2:2+size], 16, 32)
	if err != nil || code > utf8.MaxRune {
		return 0, l.fail("bad escape %q", s[:2+size])
	}
	b.WriteRune(rune(code))
	return 2 + size, nil
}
