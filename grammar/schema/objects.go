package schema

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// mostPatterns bounds the patterns of names that may overlap.
const mostPatterns = 8

// objects works out the properties of a branch.
func (c *compiler) objects(b *branch) error {
	s, a := b.shape, c.arena
	b.object, b.minimum, b.maximum = true, s.minimum, s.maximum
	var names []string
	at := map[string]bool{}
	add := func(name string) {
		if !at[name] {
			at[name] = true
			names = append(names, name)
		}
	}
	for _, p := range s.parts {
		for _, n := range p.named {
			add(n.name)
		}
	}
	for _, name := range s.required {
		add(name)
	}
	var taken []string
	required := map[string]bool{}
	for _, name := range s.required {
		required[name] = true
	}
	for _, name := range names {
		taken = append(taken, regex.Spell(name))
		if err := c.spend(1 + len(s.parts) + s.patterns()*len(name) + len(s.forbidden)/16); err != nil {
			return err
		}
		if slices.Contains(s.forbidden, name) || !c.named(s, name) {
			if required[name] {
				b.object = false
				return nil
			}
			continue
		}
		n, err := c.node(c.of(s, name))
		if err != nil {
			return err
		}
		b.entries = append(b.entries, entry{key: a.Literal(`"` + regex.Spell(name) + `"`), name: name, node: n, required: required[name]})
	}
	for _, name := range s.forbidden {
		taken = append(taken, regex.Spell(name))
	}
	if !c.options.Listed || !s.listsProperties() || b.minimum > b.needed(0) || s.last != nil {
		if err := c.otherEntries(b, a.Not(a.Literals(taken))); err != nil {
			return err
		}
	}
	if b.object = len(b.last) > 0 || s.last == nil; !b.object {
		return nil
	}
	return c.arrange(b)
}

// The others that are told apart, by bits of a symbol behind those that number the
// next entry.
const (
	looseAt   = 20
	mostLoose = 62 - looseAt
	nextEntry = 1<<looseAt - 1
)

// finished is the bit that says that an entry of branch.last has been written. It has to
// be the last of its name, so that only others follow.
const finished = 1 << 62

// mostOptional bounds the properties of which any may come next.
const mostOptional = 1 << 13

// arrange divides the properties that may be there once into those that stand in order
// and those that stand in any, and lets names be counted that have no order.
func (c *compiler) arrange(b *branch) error {
	optional := 0
	for _, e := range b.entries {
		if optional++; e.required {
			optional = 0
		}
		if optional > mostOptional {
			return fmt.Errorf("properties: more than %d in a row that need not be there are not supported", mostOptional)
		}
	}
	if len(b.entries) > nextEntry {
		return fmt.Errorf("properties: there are more than %d", nextEntry)
	}
	var singles, sets []entry
	for _, e := range b.others {
		if e.single {
			singles = append(singles, e)
		} else {
			sets = append(sets, e)
		}
	}
	named := len(b.entries) + len(singles)
	if more := b.minimum - b.needed(0); len(sets) > 0 && more > len(sets) { // names of a set differ if they draw different lots
		lots := min(4*more, (mostLoose-len(singles))/len(sets))
		if lots < more {
			return fmt.Errorf("minProperties: so many beside the required ones are not supported")
		}
		var drawn []entry
		for _, e := range sets {
			for i := range lots {
				k := e
				k.names = c.arena.And(e.names, c.arena.Lot(i, lots))
				k.key = c.quoted(k.names)
				drawn = append(drawn, k)
			}
		}
		sets = drawn
	}
	counting := 0 // sets of which some have to be told apart
	if b.minimum > 0 {
		counting = len(sets)
	}
	b.free = c.options.AnyOrder && named+counting < 62
	if b.free || len(singles)+counting > mostLoose {
		b.entries = append(b.entries, singles...)
		singles = nil
	}
	if b.others = append(singles, sets...); counting > mostLoose {
		return fmt.Errorf("patternProperties: they overlap in more than %d ways", mostLoose)
	}
	return nil
}

// listsProperties reports whether the schemas list properties and say nothing of
// others. What the complement of a schema names, it does not ask for.
func (s *shape) listsProperties() bool {
	listed := false
	for _, p := range s.parts {
		if len(p.patterns) > 0 || p.others != nil {
			return false
		}
		listed = listed || !p.silent
	}
	return listed && len(s.names) == 0
}

// patterns is how many patterns of names there are.
func (s *shape) patterns() int {
	n := len(s.names)
	for i := range s.parts {
		n += len(s.parts[i].patterns)
	}
	return n
}

// named reports whether a property may have that name.
func (c *compiler) named(s *shape, name string) bool {
	return !slices.ContainsFunc(s.names, func(e regex.Expr) bool { return !c.arena.Matches(e, regex.Spell(name)) })
}

// otherEntries works out the properties that are not named: by the patterns that
// their names match, and those that they do not.
func (c *compiler) otherEntries(b *branch, free regex.Expr) error {
	s, a := b.shape, c.arena
	var patterns []regex.Expr
	for _, p := range s.parts {
		for _, q := range p.patterns {
			if !slices.Contains(patterns, q.expr) {
				patterns = append(patterns, q.expr)
			}
		}
	}
	if len(patterns) > mostPatterns {
		return fmt.Errorf("patternProperties: more than %d patterns are not supported", mostPatterns)
	}
	for set := range 1 << len(patterns) {
		names := append([]regex.Expr{a.AnyText(regex.JSON), free, a.Not(c.never)}, s.names...)
		for i, p := range patterns {
			if set>>i&1 == 0 {
				p = a.Not(p)
			}
			names = append(names, p)
		}
		var all subs
		for _, p := range s.parts {
			matched := false
			for _, q := range p.patterns {
				if set>>slices.Index(patterns, q.expr)&1 != 0 {
					all, matched = append(all, q.sub), true
				}
			}
			if !matched && p.others != nil {
				all = append(all, *p.others)
			}
		}
		if slices.ContainsFunc(all, func(s sub) bool { return s.schema.kind == booleans && s.schema.truth == s.not }) {
			continue
		}
		key := a.And(names...)
		if key == regex.None {
			continue
		}
		n, err := c.node(all)
		if err != nil {
			return err
		}
		if s.last != nil {
			n, err := c.node(slices.Concat(all, s.last.all))
			if err != nil {
				return err
			}
			key := a.And(append(names, s.last.names)...)
			b.last = append(b.last, entry{key: c.quoted(key), names: key, node: n})
			if key = a.And(append(names, a.Not(s.last.names))...); key != regex.None {
				if n, err = c.node(all); err != nil {
					return err
				}
				b.after = append(b.after, entry{key: c.quoted(key), names: key, node: n})
			}
		}
		if few, ok := a.Few(names, mostListed); ok {
			for _, text := range few {
				b.others = append(b.others, entry{key: c.quoted(a.Literal(text)), name: unspelt(text), names: a.Literal(text), node: n, single: true})
			}
			continue
		}
		b.others = append(b.others, entry{key: c.quoted(key), names: key, node: n})
	}
	return nil
}

// mostListed bounds the names that are written out where a pattern has no more.
const mostListed = 256

// unspelt is a text that JSON writes so within a string.
func unspelt(text string) string {
	var out string
	if json.Unmarshal([]byte(`"`+text+`"`), &out) != nil {
		return text
	}
	return out
}

// passed reports whether entry j can no more be written at i: the entry that is
// next, with the set of others that have been written, or where all stand in any order
// the set of those that have.
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

// needed is the number of required properties from entry i on.
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

// room is how many properties that count may stand from entry i on.
func (c *compiler) room(b *branch, i int) int {
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

// behind counts entries from one on.
type behind struct{ needed, possible int }

// lookBehind finds out what is behind each entry, once it is known what is possible.
func (c *compiler) lookBehind(b *branch) {
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

func (c *compiler) entryPossible(e entry) bool {
	return c.nodes[e.node].possible && c.arena.Alive(e.key)
}

func (c *compiler) objectPossible(b *branch) bool {
	for _, e := range b.entries {
		if e.required && !c.nodes[e.node].possible {
			return false
		}
	}
	return (len(b.last) == 0 || slices.ContainsFunc(b.last, c.entryPossible)) && c.fits(b, 0, 0)
}

// fits reports whether properties from entry i on may complete those that have been
// written.
func (c *compiler) fits(b *branch, i, written int) bool {
	all, different := b.counts(written)
	if b.maximum != regex.Infinite && all+max(b.needed(i), b.minimum-different) > b.maximum {
		return false
	}
	if different >= b.minimum || different+c.room(b, i) >= b.minimum {
		return true
	}
	return b.minimum == 1 && len(b.last) > 0 && i&finished == 0
}

// counts are how many properties have been written, and how many of them have names of
// their own for certain, as far as it matters.
func (b *branch) counts(written int) (all, different int) {
	return written >> 32, written & (1<<32 - 1)
}

// counted is one property more.
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

// moreEntries goes on behind a property.
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
