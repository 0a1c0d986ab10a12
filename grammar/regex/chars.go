package regex

import (
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Runes are ranges of characters, in ascending order and apart.
type Runes [][2]rune

// Plain are characters that JSON writes as they are and that patterns seldom
// exclude: what most of a vocabulary is made of.
var Plain = Runes{{' ', ' '}, {'!', '!'}, {'#', '['}, {']', '~'}, {0x80, 0x2027}, {0x202a, 0xd7ff}, {0xe000, utf8.MaxRune}}

// AnyRune is every character.
var AnyRune = Runes{{0, 0xd7ff}, {0xe000, utf8.MaxRune}}

// Normal sorts ranges and joins those that touch. Surrogates are left out.
func (r Runes) Normal() Runes {
	var in Runes
	for _, p := range r {
		for _, q := range [][2]rune{{p[0], min(p[1], 0xd7ff)}, {max(p[0], 0xe000), min(p[1], utf8.MaxRune)}} {
			if q[0] <= q[1] {
				in = append(in, q)
			}
		}
	}
	slices.SortFunc(in, func(a, b [2]rune) int { return int(a[0]) - int(b[0]) })
	var out Runes
	for _, p := range in {
		if n := len(out); n > 0 && p[0] <= out[n-1][1]+1 {
			out[n-1][1] = max(out[n-1][1], p[1])
		} else {
			out = append(out, p)
		}
	}
	return out
}

// Except returns all characters but r.
func (r Runes) Except() Runes {
	var out Runes
	lo := rune(0)
	for _, p := range r.Normal() {
		out = append(out, [2]rune{lo, p[0] - 1})
		lo = p[1] + 1
	}
	return append(out, [2]rune{lo, utf8.MaxRune}).Normal()
}

func (r Runes) hasAll(of Runes) bool {
	return !slices.ContainsFunc(of, func(p [2]rune) bool {
		return !slices.ContainsFunc(r, func(q [2]rune) bool { return q[0] <= p[0] && p[1] <= q[1] })
	})
}

// folded returns r with the letters of the other case. Some engines take ſ for an s and the
// sign of kelvin for a k: only wide does too.
func (r Runes) folded(wide bool) Runes {
	r = r.Normal()
	out := slices.Clone(r)
	for _, c := range cased() {
		if _, in := slices.BinarySearchFunc(r, c, func(p [2]rune, c rune) int {
			switch {
			case p[1] < c:
				return -1
			case p[0] > c:
				return 1
			}
			return 0
		}); !in {
			continue
		}
		for o := unicode.SimpleFold(c); o != c; o = unicode.SimpleFold(o) {
			if wide || (o < 0x80) == (c < 0x80) {
				out = append(out, [2]rune{o, o})
			}
		}
	}
	return out.Normal()
}

// foldSteps is about what folded takes, whatever the ranges.
const foldSteps = 2048

// cased are the characters that have another case.
var cased = sync.OnceValue(func() []rune {
	var out []rune
	for c := range rune(unicode.MaxRune) {
		if unicode.SimpleFold(c) != c {
			out = append(out, c)
		}
	}
	return out
})

// rangeSteps is about what it takes to find the bytes of a range of characters.
const rangeSteps = 4

// Char matches one character of r.
func (a *texts) Char(r Runes, quoting Quoting) Expr {
	r = r.Normal()
	if !a.work(rangeSteps * len(r)) {
		return None
	}
	var alts []Expr
	var ascii Bytes
	for _, p := range r {
		for c := p[0]; c <= min(p[1], 0x7f); c++ {
			if text := escapeOf(c); quoting == JSON && text != "" {
				alts = append(alts, escapedText(&a.algebra, text))
			} else {
				ascii.Add(byte(c), byte(c))
			}
		}
		if p[1] > 0x7f {
			alts = charsOf(&a.algebra, alts, max(p[0], 0x80), p[1])
		}
	}
	alts = append(alts, a.Set(ascii))
	e := a.Or(alts...)
	if e == None {
		return None
	}
	f := content
	if r.hasAll(Plain) {
		f |= covers
	}
	if r.hasAll(AnyRune) {
		f |= anyChar
	}
	for _, k := range append(alts, e) {
		if k != None {
			a.infos[k].flags |= content
		}
	}
	a.infos[e].flags |= f
	return e
}

// escape is the short or long escape of a character that needs one.
func escapeOf(c rune) string {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return `\` + string(c)
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	if c < ' ' {
		return `\u00` + string(hex[c>>4]) + string(hex[c&15])
	}
	return ""
}

// escapedText matches an escape, its digits in either case.
func escapedText(a *algebra, text string) Expr {
	e := Empty
	for i := len(text) - 1; i >= 0; i-- {
		var s Bytes
		s.Add(text[i], text[i])
		if len(text) > 2 && text[i] >= 'a' && text[i] <= 'f' {
			s.Add(text[i]-32, text[i]-32)
		}
		e = a.seq(a.Set(s), e)
	}
	return e
}

// Text matches a text in that quoting.
func (a *texts) Text(text string, quoting Quoting) Expr {
	if quoting == Raw {
		return a.Literal(text)
	}
	return a.Literal(Escape(text))
}

// charsOf appends what matches the characters from lo to hi, which are not ASCII.
func charsOf(a *algebra, alts []Expr, lo, hi rune) []Expr {
	for _, end := range []rune{0x7ff, 0xffff} { // as long encodings each
		if lo <= end && end < hi {
			alts = charsOf(a, alts, lo, end)
			lo = end + 1
		}
	}
	for i := 1; i < utf8.RuneLen(lo); i++ { // whole blocks of 64^i each
		low := rune(1)<<(6*i) - 1
		if lo&^low != hi&^low {
			if lo&low != 0 {
				alts = charsOf(a, alts, lo, lo|low)
				return charsOf(a, alts, lo|low+1, hi)
			}
			if hi&low != low {
				alts = charsOf(a, alts, lo, hi&^low-1)
				return charsOf(a, alts, hi&^low, hi)
			}
		}
	}
	first, last := utf8.AppendRune(nil, lo), utf8.AppendRune(nil, hi)
	e := Empty
	for i := len(first) - 1; i >= 0; i-- {
		var s Bytes
		s.Add(first[i], last[i])
		e = a.seq(a.Set(s), e)
	}
	return append(alts, e)
}

// Escape returns a text as JSON writes it within a string.
func Escape(text string) string {
	var b []byte
	for _, c := range text {
		if s := escapeOf(c); s != "" {
			b = append(b, s...)
		} else {
			b = utf8.AppendRune(b, c)
		}
	}
	return string(b)
}
