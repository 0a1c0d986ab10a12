package gbnf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// partBytes is the memory of a part while its rule is read.
const partBytes = 40

type parser struct {
	src   string
	at    int
	depth int
	c     *compiler
}

// line returns the number of the line that is being read.
func (p *parser) line() int { return 1 + strings.Count(p.src[:min(p.at, len(p.src))], "\n") }

// space skips white space and comments; across lines only where a rule cannot end.
func (p *parser) space(lines bool) {
	for p.at < len(p.src) {
		switch b := p.src[p.at]; {
		case b == '#':
			for p.at < len(p.src) && p.src[p.at] != '\n' {
				p.at++
			}
		case b == ' ' || b == '\t' || lines && (b == '\n' || b == '\r'):
			p.at++
		default:
			return
		}
	}
}

func (p *parser) eat(text string) bool {
	if strings.HasPrefix(p.src[p.at:], text) {
		p.at += len(text)
		return true
	}
	return false
}

func (p *parser) rules() error {
	counted := 0 // bytes whose lines are
	p.c.line = 1
	for p.space(true); p.at < len(p.src); p.space(true) {
		name := p.name()
		if name == "" {
			return errors.New("expected the name of a rule")
		}
		p.c.line += strings.Count(p.src[counted:p.at], "\n")
		counted = p.at
		p.space(false)
		if !p.eat("::=") {
			return fmt.Errorf("expected ::= behind %s", name)
		}
		p.space(true)
		body, err := p.alternatives(false)
		if err != nil {
			return err
		}
		if p.at < len(p.src) && p.src[p.at] != '\n' && p.src[p.at] != '\r' {
			return fmt.Errorf("unexpected %q", p.src[p.at])
		}
		s := p.c.named(name)
		if p.c.symbols[s].alternatives != nil {
			return fmt.Errorf("the rule %s is there twice", name)
		}
		p.c.symbols[s].alternatives = p.c.alternatives(body)
		p.c.symbols[s].line = p.c.line
	}
	return nil
}

func (p *parser) name() string {
	from := p.at
	for p.at < len(p.src) {
		b := p.src[p.at]
		if b != '-' && b != '_' && (b < '0' || b > '9') && (b|0x20 < 'a' || b|0x20 > 'z') {
			break
		}
		p.at++
	}
	return p.src[from:p.at]
}

// alternatives reads up to the end of a rule, or of a group.
func (p *parser) alternatives(group bool) (part, error) {
	if p.depth++; p.depth > mostNesting {
		return part{}, fmt.Errorf("groups are nested deeper than %d", mostNesting)
	}
	defer func() { p.depth-- }()
	var parts []part
	for {
		one, err := p.items(group)
		if err != nil {
			return part{}, err
		}
		parts = append(parts, one)
		if !p.eat("|") {
			return p.c.choice(parts), nil
		}
		p.space(true)
	}
}

// items reads one alternative.
func (p *parser) items(group bool) (part, error) {
	var parts []part
	for {
		p.space(group)
		one, ok, err := p.item()
		if err != nil {
			return part{}, err
		}
		if !ok {
			return p.c.concat(parts), nil
		}
		for again := true; again; {
			p.space(group)
			if one, again, err = p.repeated(one); err != nil {
				return part{}, err
			}
		}
		if parts = append(parts, one); len(p.c.symbols) > mostSymbols {
			return part{}, fmt.Errorf("there are more than %d symbols", mostSymbols)
		}
		if !p.c.charge(partBytes) {
			return part{}, p.c.err
		}
	}
}

// item reads a literal, a class, a group or a name; ok: there is one.
func (p *parser) item() (one part, ok bool, err error) {
	if p.at >= len(p.src) {
		return part{}, false, nil
	}
	switch p.src[p.at] {
	case '"':
		e, err := p.literal()
		return part{regular: true, expr: e}, true, err
	case '[':
		e, err := p.class()
		return part{regular: true, expr: e}, true, err
	case '.':
		p.at++
		return part{regular: true, expr: p.c.arena.Char(regex.AnyRune, regex.Raw)}, true, nil
	case '(':
		p.at++
		p.space(true)
		one, err := p.alternatives(true)
		if err == nil && !p.eat(")") {
			err = errors.New("missing )")
		}
		return one, true, err
	}
	if name := p.name(); name != "" {
		return part{symbols: []grammar.Symbol{p.c.named(name)}}, true, nil
	}
	return part{}, false, nil
}

// repeated reads a repetition of a part, if there is one.
func (p *parser) repeated(one part) (part, bool, error) {
	least, most := 0, regex.Infinite
	switch {
	case p.eat("*"):
	case p.eat("+"):
		least = 1
	case p.eat("?"):
		most = 1
	case p.eat("{"):
		text, _, ok := strings.Cut(p.src[p.at:], "}")
		if !ok {
			return part{}, false, errors.New("missing }")
		}
		p.at += len(text) + 1
		first, second, two := strings.Cut(text, ",")
		n, err := strconv.Atoi(strings.TrimSpace(first))
		if err != nil || n < 0 || n > 1<<16 {
			return part{}, false, fmt.Errorf("{%.20s} is no repetition", text)
		}
		least, most = n, n
		if two {
			most = regex.Infinite
			if second = strings.TrimSpace(second); second != "" {
				if most, err = strconv.Atoi(second); err != nil || most < least || most > 1<<16 {
					return part{}, false, fmt.Errorf("{%.20s} is no repetition", text)
				}
			}
		}
	default:
		return one, false, nil
	}
	out, err := p.c.repeat(one, least, most)
	return out, true, err
}

func (p *parser) literal() (regex.Expr, error) {
	p.at++
	var text []byte
	for !p.eat(`"`) {
		c, err := p.char()
		if err != nil {
			return regex.None, err
		}
		text = utf8.AppendRune(text, c)
	}
	return p.c.arena.Literal(string(text)), nil
}

func (p *parser) class() (regex.Expr, error) {
	p.at++
	negative := p.eat("^")
	var runes regex.Runes
	for !p.eat("]") {
		lo, err := p.char()
		if err != nil {
			return regex.None, err
		}
		hi := lo
		if p.at+1 < len(p.src) && p.src[p.at] == '-' && p.src[p.at+1] != ']' {
			p.at++
			if hi, err = p.char(); err != nil {
				return regex.None, err
			}
			if hi < lo {
				return regex.None, errors.New("a range is out of order")
			}
		}
		runes = append(runes, [2]rune{lo, hi})
	}
	if negative {
		runes = runes.Except()
	}
	return p.c.arena.Char(runes, regex.Raw), nil
}

// char reads a character of a literal or a class.
func (p *parser) char() (rune, error) {
	c, size := utf8.DecodeRuneInString(p.src[p.at:])
	if size == 0 || c == '\n' {
		return 0, errors.New("a literal or a class has no end")
	}
	if c == utf8.RuneError && size == 1 {
		return 0, errors.New("not UTF-8")
	}
	p.at += size
	if c != '\\' {
		return c, nil
	}
	if p.at >= len(p.src) {
		return 0, errors.New("the text ends with a backslash")
	}
	b := p.src[p.at]
	p.at++
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[b]
	if digits > 0 {
		if p.at+digits > len(p.src) {
			return 0, errors.New("an escape is cut off")
		}
		n, err := strconv.ParseUint(p.src[p.at:p.at+digits], 16, 32)
		if err != nil || n > utf8.MaxRune || n >= 0xd800 && n < 0xe000 {
			return 0, fmt.Errorf(`\%c%s is no character`, b, p.src[p.at:p.at+digits])
		}
		p.at += digits
		return rune(n), nil
	}
	switch b {
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case '"', '\\', '[', ']', '-', '^', '\'', '/':
		return rune(b), nil
	}
	return 0, fmt.Errorf(`\%c is no escape`, b)
}
