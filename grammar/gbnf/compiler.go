package gbnf

import (
	"fmt"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// The bounds of a grammar.
const (
	mostBytes   = 1 << 18
	mostNesting = 100
	mostCopies  = 1 << 12 // of a group with rules in it that is repeated
	mostSymbols = 1 << 16
)

// What a symbol and a sequence take; the symbols in it take 4 bytes each.
const (
	symbolBytes   = 160
	sequenceBytes = 48
)

// compiler holds the rules read so far.
type compiler struct {
	budget  *budget.Budget
	arena   *regex.Arena
	names   map[string]grammar.Symbol
	symbols []symbol
	line    int   // of the rule that is being read
	err     error // of the budget
}

// fault returns an error of the budget, if it has been spent.
func (c *compiler) fault() error {
	if c.err == nil {
		c.err = c.arena.Err()
	}
	return c.err
}

// charge charges a step and bytes, and reports whether there is room for them.
func (c *compiler) charge(bytes int) bool {
	err := c.budget.Work(1)
	if err == nil {
		err = c.budget.Hold(bytes)
	}
	if err != nil && c.err == nil {
		c.err = err
	}
	return c.err == nil
}

// symbol is a terminal or a rule.
type symbol struct {
	name         string // of a rule that has one
	line         int    // where it is first named
	expr         regex.Expr
	terminal     bool
	alternatives [][]grammar.Symbol // nil: a rule that is not there yet
}

// Terminal implements grammar.Rules.
func (c *compiler) Terminal(s grammar.Symbol) (regex.Expr, bool) {
	return c.symbols[s].expr, c.symbols[s].terminal
}

// Alternatives implements grammar.Rules.
func (c *compiler) Alternatives(s grammar.Symbol) [][]grammar.Symbol {
	return c.symbols[s].alternatives
}

func (c *compiler) add(s symbol) grammar.Symbol {
	s.line = c.line
	c.charge(symbolBytes)
	for _, sequence := range s.alternatives {
		c.charge(sequenceBytes + 4*len(sequence))
	}
	c.symbols = append(c.symbols, s)
	return grammar.Symbol(len(c.symbols) - 1)
}

// named returns the symbol of a rule.
func (c *compiler) named(name string) grammar.Symbol {
	s, ok := c.names[name]
	if !ok {
		s = c.add(symbol{name: name})
		c.names[name] = s
	}
	return s
}

// part is a piece of a rule: an expression, or where rules occur a sequence of
// symbols.
type part struct {
	regular bool
	expr    regex.Expr
	symbols []grammar.Symbol
}

func (c *compiler) sequence(p part) []grammar.Symbol {
	if !p.regular {
		return p.symbols
	}
	if p.expr == regex.Empty {
		return []grammar.Symbol{}
	}
	return []grammar.Symbol{c.add(symbol{expr: p.expr, terminal: true})}
}

// alternatives returns the sequences of a rule. A choice's sequences are its own, with no symbol
// between, which would hide that the rule ends with itself.
func (c *compiler) alternatives(p part) [][]grammar.Symbol {
	if len(p.symbols) == 1 {
		if s := c.symbols[p.symbols[0]]; s.name == "" && !s.terminal {
			return s.alternatives
		}
	}
	return [][]grammar.Symbol{c.sequence(p)}
}

// concat joins parts one after another; neighbours that are expressions are joined.
func (c *compiler) concat(parts []part) part {
	var symbols []grammar.Symbol
	var run []regex.Expr // joined once all are there: a sequence is made from its end on
	regular := true
	for _, p := range parts {
		if p.regular {
			run = append(run, p.expr)
			continue
		}
		regular = false
		symbols = append(append(symbols, c.sequence(part{regular: true, expr: c.arena.Seq(run...)})...), p.symbols...)
		run = run[:0]
	}
	end := part{regular: true, expr: c.arena.Seq(run...)}
	if regular {
		return end
	}
	c.charge(4 * len(symbols))
	return part{symbols: append(symbols, c.sequence(end)...)}
}

// choice joins parts of which one stands there.
func (c *compiler) choice(parts []part) part {
	if len(parts) == 1 {
		return parts[0]
	}
	regular := true
	var exprs []regex.Expr
	var alternatives [][]grammar.Symbol
	for _, p := range parts {
		regular = regular && p.regular
		exprs = append(exprs, p.expr)
	}
	if regular {
		return part{regular: true, expr: c.arena.Or(exprs...)}
	}
	for _, p := range parts {
		alternatives = append(alternatives, c.sequence(p))
	}
	return part{symbols: []grammar.Symbol{c.add(symbol{alternatives: alternatives})}}
}

// repeat repeats a part from least to most times.
func (c *compiler) repeat(p part, least, most int) (part, error) {
	if p.regular {
		return part{regular: true, expr: c.arena.Repeat(p.expr, least, most)}, nil
	}
	if max(least, most) > mostCopies || len(c.symbols)+max(least, most) > mostSymbols {
		return part{}, fmt.Errorf("a group with rules is repeated more than %d times, or there are more than %d symbols", mostCopies, mostSymbols)
	}
	one := c.single(p)
	var out []grammar.Symbol
	for range least {
		out = append(out, one)
	}
	c.charge(4 * least)
	switch {
	case most == regex.Infinite:
		tail := c.add(symbol{})
		c.symbols[tail].alternatives = [][]grammar.Symbol{{one, tail}, {}}
		out = append(out, tail)
	case most > least:
		tail := c.add(symbol{alternatives: [][]grammar.Symbol{{one}, {}}})
		for range most - least - 1 {
			tail = c.add(symbol{alternatives: [][]grammar.Symbol{{one, tail}, {}}})
		}
		out = append(out, tail)
	}
	return part{symbols: out}, nil
}

// single returns a symbol for a part, so that copies of it take no more than that.
func (c *compiler) single(p part) grammar.Symbol {
	if len(p.symbols) == 1 {
		return p.symbols[0]
	}
	return c.add(symbol{alternatives: [][]grammar.Symbol{p.symbols}})
}
