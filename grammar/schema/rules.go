package schema

import (
	"fmt"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// Terminal implements grammar.Rules.
func (c *compiler) Terminal(id grammar.Symbol) (regex.Expr, bool) {
	s := c.symbols[id]
	return s.expr, s.kind == symTerminal
}

// Alternatives implements grammar.Rules.
func (c *compiler) Alternatives(id grammar.Symbol) [][]grammar.Symbol {
	s := c.symbols[id]
	n := c.nodes[s.node]
	if s.kind == symValue {
		return c.values(s.node, n)
	}
	b := n.branches[s.branch]
	switch s.kind {
	case symItem:
		return c.item(s, b)
	case symItems:
		return c.moreItems(s, b)
	case symEntry:
		return c.entry(s, b)
	}
	return c.moreEntries(s, b)
}

// values lists the ways to write a value of a node.
func (c *compiler) values(id int, n *node) [][]grammar.Symbol {
	a := c.arena
	var out [][]grammar.Symbol
	if n.scalar != regex.None {
		out = append(out, []grammar.Symbol{c.terminal(n.scalar)})
	}
	for i, b := range n.branches {
		if b.list && c.listPossible(b) {
			open := c.terminal(a.Byte('['), c.indent)
			if first := (symbol{kind: symItem, node: id, branch: i}); len(c.item(first, b)) > 0 {
				out = append(out, []grammar.Symbol{open, c.symbol(first)})
			}
			if b.fewest == 0 && (b.counting == nil || b.counting.enough(0)) {
				out = append(out, []grammar.Symbol{c.terminal(a.Literal("[]"))})
			}
		}
		if b.object && c.objectPossible(b) {
			open := c.terminal(a.Byte('{'), c.indent)
			if first := (symbol{kind: symEntry, node: id, branch: i}); c.another(first, b) {
				out = append(out, []grammar.Symbol{open, c.symbol(first)})
			}
			if b.minimum == 0 && b.needed(0) == 0 {
				out = append(out, []grammar.Symbol{c.terminal(a.Literal("{}"))})
			}
		}
	}
	return out
}

// lists works out the items of a branch.
func (c *graph) lists(b *branch) error {
	s := b.shape
	b.list, b.fewest, b.longest = true, s.fewest, s.longest
	fixed := 0
	for _, l := range s.lists {
		fixed = max(fixed, len(l.prefix))
	}
	for _, k := range s.contained {
		fixed = max(fixed, k.from)
	}
	if fixed > mostPlaces {
		return fmt.Errorf("prefixItems: more than %d are not supported", mostPlaces)
	}
	add := func(all subs, to *int) (err error) {
		*to, err = c.node(all)
		return err
	}
	b.prefix = make([]int, fixed)
	for i := range fixed {
		if err := add(s.item(i), &b.prefix[i]); err != nil {
			return err
		}
	}
	if err := add(s.item(fixed), &b.rest); err != nil {
		return err
	}
	if len(s.contained) > 0 {
		if err := c.count(b); err != nil {
			return err
		}
	}
	if s.unique && (b.longest == regex.Infinite || b.longest > 1) {
		return holdApart(c, b)
	}
	return nil
}

// at returns the node of item i.
func (b *branch) at(i int) int {
	if i < len(b.prefix) {
		return b.prefix[i]
	}
	return b.rest
}

// longestPossible returns how many items there can be.
func (c *graph) longestPossible(b *branch) int {
	for i := range b.prefix {
		if !c.nodes[b.prefix[i]].possible {
			return fewer(b.longest, i)
		}
	}
	if !c.nodes[b.rest].possible {
		return fewer(b.longest, len(b.prefix))
	}
	return b.longest
}

func (c *graph) listPossible(b *branch) bool {
	most := c.longestPossible(b)
	if most != regex.Infinite && most < b.fewest || b.differ != regex.None && !c.arena.Exceeds(b.differ, b.fewest-1) {
		return false
	}
	if b.counting != nil {
		clear(b.counting.done)
		return c.completes(b, 0, 0)
	}
	return true
}

// item writes item i and what follows.
func (c *compiler) item(s symbol, b *branch) [][]grammar.Symbol {
	most := c.longestPossible(b)
	if most != regex.Infinite && s.i >= most {
		return nil
	}
	next := s
	next.kind, next.i = symItems, c.counted(b, s.i+1)
	if b.choices != nil {
		var out [][]grammar.Symbol
		for i, e := range b.choices {
			if s.n>>i&1 == 0 {
				used := next
				used.n |= 1 << i
				out = append(out, []grammar.Symbol{c.terminal(e), c.symbol(used)})
			}
		}
		return out
	}
	if b.differ != regex.None {
		return [][]grammar.Symbol{{c.terminal(b.differ), c.symbol(next)}}
	}
	var out [][]grammar.Symbol
	if b.counting != nil {
		for _, k := range c.picks(b, s.i, s.n) {
			next.n = k.counts
			out = append(out, []grammar.Symbol{c.symbol(symbol{kind: symValue, node: k.node}), c.symbol(next)})
		}
		return out
	}
	if c.nodes[b.at(s.i)].possible {
		out = append(out, []grammar.Symbol{c.symbol(symbol{kind: symValue, node: b.at(s.i)}), c.symbol(next)})
	}
	return out
}

// counted returns a number of items, i, as far as it matters.
func (c *graph) counted(b *branch, i int) int {
	if c.longestPossible(b) == regex.Infinite { // counting on would change nothing
		return min(i, max(len(b.prefix), b.fewest))
	}
	return i
}

// moreItems goes on after an item.
func (c *compiler) moreItems(s symbol, b *branch) [][]grammar.Symbol {
	a := c.arena
	var out [][]grammar.Symbol
	next := s
	next.kind = symItem
	if len(c.item(next, b)) > 0 {
		out = append(out, []grammar.Symbol{c.terminal(a.Byte(','), c.either), c.symbol(next)})
	}
	if s.i >= b.fewest && (b.counting == nil || b.counting.enough(s.n)) {
		out = append(out, []grammar.Symbol{c.terminal(c.indent, a.Byte(']'))})
	}
	return out
}
