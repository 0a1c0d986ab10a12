// Package gbnf reads grammars as llama.cpp writes them: rules such as
// root ::= "a" [b-d]* other | "e"{2,3}, of which root is the whole text.
package gbnf

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// The bounds of a grammar.
const (
	mostBytes   = 1 << 18
	mostNesting = 100
	mostCopies  = 1 << 12 // of a group with rules in it that is repeated
	mostSymbols = 1 << 16
)

// Error says why a grammar is refused.
type Error struct{ Err error }

func (e *Error) Error() string { return "grammar: " + e.Err.Error() }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Compile makes a grammar of its text. An error is an *Error.
func Compile(text string) (*grammar.Grammar, error) {
	g, err := compile(text)
	if err != nil {
		return nil, &Error{err}
	}
	return g, nil
}

func compile(text string) (*grammar.Grammar, error) {
	if len(text) > mostBytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), mostBytes)
	}
	c := &compiler{arena: regex.New(), names: map[string]grammar.Symbol{}}
	p := &parser{src: text, c: c}
	if err := p.rules(); err != nil {
		return nil, fmt.Errorf("line %d: %w", p.line(), err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.names)) {
		if c.symbols[c.names[name]].alternatives == nil {
			return nil, fmt.Errorf("there is no rule %s", name)
		}
	}
	root, ok := c.names["root"]
	if !ok {
		return nil, errors.New("there is no rule root")
	}
	if err := c.arena.Err(); err != nil {
		return nil, err
	}
	if name := c.leftRecursive(); name != "" {
		return nil, fmt.Errorf("the rule %s begins with itself", name)
	}
	if !c.prune()[root] {
		return nil, errors.New("no text meets it")
	}
	return grammar.New(c.arena, c, root)
}

// compiler holds the rules read so far.
type compiler struct {
	arena   *regex.Arena
	names   map[string]grammar.Symbol
	symbols []symbol
}

// symbol is a terminal or a rule.
type symbol struct {
	name         string // of a rule that has one
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
	c.symbols = append(c.symbols, s)
	return grammar.Symbol(len(c.symbols) - 1)
}

// named is the symbol of a rule.
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

// concat is parts one after another; neighbours that are expressions are joined.
func (c *compiler) concat(parts []part) part {
	out := part{regular: true, expr: regex.Empty}
	pending := regex.Empty
	for _, p := range parts {
		if p.regular {
			pending = c.arena.Seq(pending, p.expr)
			continue
		}
		out.regular = false
		out.symbols = append(append(out.symbols, c.sequence(part{regular: true, expr: pending})...), p.symbols...)
		pending = regex.Empty
	}
	if out.regular {
		out.expr = pending
	} else {
		out.symbols = append(out.symbols, c.sequence(part{regular: true, expr: pending})...)
	}
	return out
}

// choice is one of the parts.
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

// repeat is a part from least to most times.
func (c *compiler) repeat(p part, least, most int) (part, error) {
	if p.regular {
		return part{regular: true, expr: c.arena.Repeat(p.expr, least, most)}, nil
	}
	if max(least, most) > mostCopies || len(c.symbols)+max(least, most) > mostSymbols {
		return part{}, fmt.Errorf("a group with rules is repeated more than %d times", mostCopies)
	}
	var out []grammar.Symbol
	for range least {
		out = append(out, p.symbols...)
	}
	var tail grammar.Symbol
	switch {
	case most == regex.Infinite:
		tail = c.add(symbol{})
		c.symbols[tail].alternatives = [][]grammar.Symbol{append(p.symbols[:len(p.symbols):len(p.symbols)], tail), {}}
	case most > least:
		tail = c.add(symbol{alternatives: [][]grammar.Symbol{p.symbols, {}}})
		for range most - least - 1 {
			tail = c.add(symbol{alternatives: [][]grammar.Symbol{append(p.symbols[:len(p.symbols):len(p.symbols)], tail), {}}})
		}
	default:
		return part{symbols: out}, nil
	}
	return part{symbols: append(out, tail)}, nil
}

// settle finds the symbols of which holds is true by their parts, from below.
func (c *compiler) settle(terminal func(e regex.Expr) bool) []bool {
	out := make([]bool, len(c.symbols))
	for changed := true; changed; {
		changed = false
		for i, s := range c.symbols {
			if out[i] {
				continue
			}
			out[i] = s.terminal && terminal(s.expr)
			for _, sequence := range s.alternatives {
				all := true
				for _, k := range sequence {
					all = all && out[k]
				}
				out[i] = out[i] || all
			}
			changed = changed || out[i]
		}
	}
	return out
}

// prune drops alternatives that no text meets, and tells which symbols are left.
func (c *compiler) prune() []bool {
	c.arena.Freeze()
	alive := c.settle(c.arena.Alive)
	for i := range c.symbols {
		s := &c.symbols[i]
		kept := s.alternatives[:0:0]
		for _, sequence := range s.alternatives {
			all := true
			for _, k := range sequence {
				all = all && alive[k]
			}
			if all {
				kept = append(kept, sequence)
			}
		}
		s.alternatives = kept
	}
	return alive
}

// leftRecursive is the name of a rule that begins with itself, if there is one.
func (c *compiler) leftRecursive() string {
	empty := c.settle(c.arena.Nullable)
	const begun, done = 1, 2
	mark := make([]uint8, len(c.symbols))
	named := ""
	// A stack of its own: rules may be nested deeper than goroutines should be.
	type visit struct {
		symbol grammar.Symbol
		next   []grammar.Symbol
	}
	firsts := func(s grammar.Symbol) (out []grammar.Symbol) {
		for _, sequence := range c.symbols[s].alternatives {
			for _, k := range sequence {
				out = append(out, k)
				if !empty[k] {
					break
				}
			}
		}
		return out
	}
	for root := range c.symbols {
		if mark[root] != 0 {
			continue
		}
		stack := []visit{{grammar.Symbol(root), firsts(grammar.Symbol(root))}}
		mark[root] = begun
		for len(stack) > 0 {
			v := &stack[len(stack)-1]
			if len(v.next) == 0 {
				mark[v.symbol] = done
				stack = stack[:len(stack)-1]
				continue
			}
			k := v.next[0]
			v.next = v.next[1:]
			switch mark[k] {
			case begun:
				for _, v := range stack {
					if v.symbol == k || c.symbols[v.symbol].name != "" {
						named = c.symbols[v.symbol].name
					}
				}
				if named == "" {
					named = "root"
				}
				return named
			case 0:
				mark[k] = begun
				stack = append(stack, visit{k, firsts(k)})
			}
		}
	}
	return ""
}
