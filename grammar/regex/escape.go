package regex

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The classes of ECMA-262.
var (
	digits = Runes{{'0', '9'}}
	words  = Runes{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	spaces = Runes{{'\t', '\r'}, {' ', ' '}, {0xa0, 0xa0}, {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}}
)

// classEscapes and controlEscapes are the letters after a backslash that stand for classes and for control characters.
var (
	classEscapes   = map[rune]Runes{'d': digits, 'D': digits.Except(), 'w': words, 'W': words.Except(), 's': spaces, 'S': spaces.Except()}
	controlEscapes = map[rune]rune{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f', 'v': '\v'}
)

// escape reads what follows a backslash; single: it is one character.
func (p *parser) escape(inClass bool) (r Runes, single bool, err error) {
	c, size := utf8.DecodeRuneInString(p.src[p.at:])
	if size == 0 {
		return nil, false, fmt.Errorf("the pattern ends with a backslash")
	}
	p.at += size
	one := func(c rune) (Runes, bool, error) { return Runes{{c, c}}, true, nil }
	if class, ok := classEscapes[c]; ok {
		return class, false, nil
	}
	if control, ok := controlEscapes[c]; ok {
		return one(control)
	}
	switch c {
	case 'b':
		if inClass {
			return one('\b')
		}
	case 'B', 'k':
		return nil, false, fmt.Errorf(`\%c is not supported`, c)
	case '0':
		if p.peek() < '0' || p.peek() > '9' {
			return one(0)
		}
	case 'c':
		if l := p.peek() | 0x20; l >= 'a' && l <= 'z' {
			p.at++
			return one(rune(l - 'a' + 1))
		}
	case 'x':
		if n, ok := p.hex(2); ok {
			return one(n)
		}
	case 'u':
		return p.unicode()
	case 'p', 'P':
		return p.property(c == 'P')
	}
	if c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
		return nil, false, fmt.Errorf(`\%c is not supported`, c)
	}
	return one(c)
}

func (p *parser) hex(digits int) (rune, bool) {
	if p.at+digits > len(p.src) {
		return 0, false
	}
	n, err := strconv.ParseUint(p.src[p.at:p.at+digits], 16, 32)
	if err != nil {
		return 0, false
	}
	p.at += digits
	return rune(n), true
}

func (p *parser) unicode() (Runes, bool, error) {
	if p.eat("{") {
		text, _, ok := strings.Cut(p.src[p.at:], "}")
		n, err := strconv.ParseUint(text, 16, 32)
		if !ok || err != nil || n > utf8.MaxRune {
			return nil, false, fmt.Errorf(`bad \u{...}`)
		}
		p.at += len(text) + 1
		return Runes{{rune(n), rune(n)}}, true, nil
	}
	hi, ok := p.hex(4)
	if !ok {
		return nil, false, fmt.Errorf(`bad \u escape`)
	}
	if hi >= 0xd800 && hi < 0xdc00 && p.eat(`\u`) {
		lo, ok := p.hex(4)
		if !ok || lo < 0xdc00 || lo > 0xdfff {
			return nil, false, fmt.Errorf(`half a surrogate pair`)
		}
		hi = (hi-0xd800)<<10 + (lo - 0xdc00) + 0x10000
	}
	return Runes{{hi, hi}}, true, nil
}

// property reads {L} or {Script=Greek} after \p.
func (p *parser) property(negative bool) (Runes, bool, error) {
	text, _, ok := strings.Cut(p.src[p.at:], "}")
	if !ok || !strings.HasPrefix(text, "{") {
		return nil, false, fmt.Errorf(`bad \p{...}`)
	}
	p.at += len(text) + 1
	key, name, two := strings.Cut(text[1:], "=")
	table := unicode.Categories[key]
	if two {
		switch key {
		case "Script", "sc", "Script_Extensions", "scx":
			table = unicode.Scripts[name]
		case "General_Category", "gc":
			table = unicode.Categories[name]
		}
	} else if long, ok := categories[key]; ok {
		table = unicode.Categories[long]
	}
	if table == nil {
		return nil, false, fmt.Errorf(`\p%s} is not supported`, text)
	}
	var r Runes
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			r = append(r, [2]rune{lo, hi})
			return
		}
		for c := lo; c <= hi; c += stride {
			r = append(r, [2]rune{c, c})
		}
	}
	for _, t := range table.R16 {
		add(rune(t.Lo), rune(t.Hi), rune(t.Stride))
	}
	for _, t := range table.R32 {
		add(rune(t.Lo), rune(t.Hi), rune(t.Stride))
	}
	if err := p.budget.Work(len(r)); err != nil {
		return nil, false, err
	}
	if negative {
		return r.Except(), false, nil
	}
	return r.Normal(), false, nil
}

// categories are the long names of the commonest.
var categories = map[string]string{
	"Letter": "L", "Lowercase_Letter": "Ll", "Uppercase_Letter": "Lu", "Number": "N", "Decimal_Number": "Nd", "digit": "Nd",
	"Punctuation": "P", "punct": "P", "Symbol": "S", "Separator": "Z", "Space_Separator": "Zs", "Mark": "M", "Other": "C",
}
