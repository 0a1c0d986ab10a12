package gbnf

import (
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// settle finds the symbols of which holds is true by their parts, from below: that takes
// as long as the rules are.
func (c *compiler) settle(terminal func(e regex.Expr) bool) []bool {
	type sequence struct {
		of      int
		missing int // symbols that are not known to hold
	}
	var sequences []sequence
	holds := make([]bool, len(c.symbols))
	within := make([][]int, len(c.symbols)) // the sequences that have a symbol
	var todo []int
	settled := func(s int) {
		if !holds[s] {
			holds[s] = true
			todo = append(todo, s)
		}
	}
	for i, s := range c.symbols {
		if s.terminal && terminal(s.expr) {
			settled(i)
		}
		for _, symbols := range s.alternatives {
			for _, k := range symbols {
				within[k] = append(within[k], len(sequences))
			}
			if len(symbols) == 0 {
				settled(i)
			}
			sequences = append(sequences, sequence{i, len(symbols)})
		}
	}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, i := range within[s] {
			if sequences[i].missing--; sequences[i].missing == 0 {
				settled(sequences[i].of)
			}
		}
	}
	return holds
}

// prune drops alternatives that no text meets.
func (c *compiler) prune(alive []bool) {
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
}

// firsts returns the symbols that a rule may begin with. The rule itself at the end of a
// sequence is none: where all before it is empty, it says nothing new.
func (c *compiler) firsts(s grammar.Symbol, empty []bool) (out []grammar.Symbol) {
	for _, sequence := range c.symbols[s].alternatives {
		for i, k := range sequence {
			if k != s || i == 0 || i < len(sequence)-1 {
				out = append(out, k)
			}
			if !empty[k] {
				break
			}
		}
	}
	return out
}

// leftRecursive returns an error that names a rule which begins with itself, if there is one.
func (c *compiler) leftRecursive() error {
	empty := c.settle(c.arena.Nullable)
	const begun, done = 1, 2
	mark := make([]uint8, len(c.symbols))
	// A stack of its own: rules may be nested deeper than goroutines should be.
	type visit struct {
		symbol grammar.Symbol
		next   []grammar.Symbol
	}
	for root := range c.symbols {
		if mark[root] != 0 {
			continue
		}
		stack := []visit{{grammar.Symbol(root), c.firsts(grammar.Symbol(root), empty)}}
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
				var circle []grammar.Symbol
				for i := len(stack) - 1; i >= 0; i-- {
					if circle = append(circle, stack[i].symbol); stack[i].symbol == k {
						break
					}
				}
				return c.circular(circle)
			case 0:
				mark[k] = begun
				stack = append(stack, visit{k, c.firsts(k, empty)})
			}
		}
	}
	return nil
}

// mostNamed bounds the rules that an error names.
const mostNamed = 5

// circular says that rules begin with each other: each with the one before it.
func (c *compiler) circular(circle []grammar.Symbol) error {
	var names []string
	line := c.symbols[circle[len(circle)-1]].line
	for i := len(circle) - 1; i >= 0; i-- {
		if s := c.symbols[circle[i]]; s.name != "" {
			if len(names) == 0 {
				line = s.line
			}
			names = append(names, s.name)
		}
	}
	switch {
	case len(names) == 0:
		return fmt.Errorf("line %d: a group begins with itself", line)
	case len(names) == 1:
		return fmt.Errorf("line %d: the rule %s begins with itself", line, names[0])
	case len(names) > mostNamed:
		names = append(names[:mostNamed], "...")
	}
	return fmt.Errorf("line %d: the rule %s begins with itself, by way of %s", line, names[0], strings.Join(names[1:], ", "))
}
