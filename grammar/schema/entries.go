package schema

import (
	"slices"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// passed reports whether entry j can no more be written at i. i is the next entry with the set of others that have been
// written; if entries stand in any order, it is the set of written ones.
func (b *branch) passed(j, i int) bool {
	if b.free {
		return i>>j&1 != 0
	}
	return j < i&nextEntry
}

// used reports whether the other entry j has been written and does not count again.
func (b *branch) used(j, i int) bool { return i&b.bit(j) != 0 }

// bit stands for the other entry j.
func (b *branch) bit(j int) int {
	if b.free {
		return 1 << (len(b.entries) + j)
	}
	return 1 << (looseAt + j)
}

// needed returns the number of required properties from entry i on.
func (b *branch) needed(i int) int {
	last := 0
	if len(b.last) > 0 && i&finished == 0 {
		last = 1
	}
	if b.behind != nil && !b.free {
		return last + b.behind[i&nextEntry].needed
	}
	n := last
	for j, e := range b.entries {
		if e.required && !b.passed(j, i) {
			n++
		}
	}
	return n
}

// room returns how many properties that count may stand from entry i on.
func (c *graph) room(b *branch, i int) int {
	room := 0
	if i&finished != 0 {
		return 0
	}
	for j, e := range b.others {
		if !b.used(j, i) && c.entryPossible(e) {
			room++
		}
	}
	if b.behind != nil && !b.free {
		return room + b.behind[i&nextEntry].possible
	}
	for j, e := range b.entries {
		if c.nodes[e.node].possible && !b.passed(j, i) {
			room++
		}
	}
	return room
}

// lookBehind finds out what is behind each entry, once it is known what is possible.
func (c *graph) lookBehind(b *branch) {
	if b.behind != nil || b.free {
		return
	}
	all := make([]behind, len(b.entries)+1)
	for i, e := range slices.Backward(b.entries) {
		all[i] = all[i+1]
		if e.required {
			all[i].needed++
		}
		if c.nodes[e.node].possible {
			all[i].possible++
		}
	}
	b.behind = all
}

func (c *graph) entryPossible(e entry) bool {
	return c.nodes[e.node].possible && c.arena.Alive(e.key)
}

func (c *graph) objectPossible(b *branch) bool {
	for _, e := range b.entries {
		if e.required && !c.nodes[e.node].possible {
			return false
		}
	}
	return (len(b.last) == 0 || slices.ContainsFunc(b.last, c.entryPossible)) && c.fits(b, 0, 0)
}

// fits reports whether properties from entry i on may complete those that have been
// written.
func (c *graph) fits(b *branch, i, written int) bool {
	all, different := b.counts(written)
	if b.maximum != regex.Infinite && all+max(b.needed(i), b.minimum-different) > b.maximum {
		return false
	}
	if different >= b.minimum || different+c.room(b, i) >= b.minimum {
		return true
	}
	return b.minimum == 1 && len(b.last) > 0 && i&finished == 0
}

// counts returns how many properties have been written, and how many of them have names of
// their own for certain, as far as it matters.
func (b *branch) counts(written int) (all, different int) {
	return written >> 32, written & (1<<32 - 1)
}

// counted returns one property more.
func (b *branch) counted(written int, again bool) int {
	all, different := b.counts(written)
	if b.maximum != regex.Infinite {
		all++
	}
	if !again && different < b.minimum {
		different++
	}
	return all<<32 | different
}

// following lists what may be written from entry s.i on: the entry, and the symbol that
// it leaves.
func (c *compiler) following(s symbol, b *branch, yield func(e entry, next symbol) bool) {
	c.lookBehind(b)
	put := func(e entry, i int, again bool) bool {
		next := s
		next.kind, next.i, next.n = symEntries, i, b.counted(s.n, again)
		return !c.entryPossible(e) || !c.fits(b, i, next.n) || yield(e, next)
	}
	if s.i&finished != 0 {
		for _, e := range b.after {
			if !put(e, s.i, true) {
				return
			}
		}
		return
	}
	first := s.i & nextEntry
	if b.free {
		first = 0
	}
	for i := first; i < len(b.entries); i++ {
		e := b.entries[i]
		switch {
		case b.passed(i, s.i):
		case b.free:
			if !put(e, s.i|1<<i, false) {
				return
			}
		default:
			if !put(e, s.i&^nextEntry|(i+1), false) || e.required {
				return
			}
		}
	}
	_, different := b.counts(s.n)
	for j, e := range b.others {
		again, next := b.used(j, s.i), s.i
		if again && e.single {
			continue
		}
		if !b.free {
			next = next&^nextEntry | len(b.entries)
		}
		if e.single || different < b.minimum {
			next |= b.bit(j)
		}
		if !put(e, next, again) {
			return
		}
	}
	if b.needed(s.i|finished) == 0 {
		for _, e := range b.last {
			if !put(e, s.i|finished, different > 0) {
				return
			}
		}
	}
}

// entry writes one property or more, from entry s.i on.
func (c *compiler) entry(s symbol, b *branch) [][]grammar.Symbol {
	var out [][]grammar.Symbol
	for e, next := range func(yield func(entry, symbol) bool) { c.following(s, b, yield) } {
		out = append(out, []grammar.Symbol{
			c.terminal(e.key, c.arena.Byte(':'), c.blank), c.symbol(symbol{kind: symValue, node: e.node}), c.symbol(next),
		})
	}
	return out
}

// another reports whether one more property may be written.
func (c *compiler) another(s symbol, b *branch) bool {
	for range func(yield func(entry, symbol) bool) { c.following(s, b, yield) } {
		return true
	}
	return false
}

// moreEntries goes on after a property.
func (c *compiler) moreEntries(s symbol, b *branch) [][]grammar.Symbol {
	a := c.arena
	var out [][]grammar.Symbol
	next := s
	next.kind = symEntry
	if c.another(next, b) {
		out = append(out, []grammar.Symbol{c.terminal(a.Byte(','), c.either), c.symbol(next)})
	}
	if _, different := b.counts(s.n); different >= b.minimum && b.needed(s.i) == 0 {
		out = append(out, []grammar.Symbol{c.terminal(c.indent, a.Byte('}'))})
	}
	return out
}
