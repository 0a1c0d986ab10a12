package schema

import (
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
		b.entries = append(b.entries, entry{a.Literal(`"` + regex.Spell(name) + `"`), n, required[name]})
	}
	for _, name := range s.forbidden {
		taken = append(taken, regex.Spell(name))
	}
	b.free = c.options.AnyOrder && len(b.entries) < 63
	if c.options.Listed && s.listsProperties() && b.minimum <= b.needed(0) {
		return nil
	}
	return c.otherEntries(b, a.Not(a.Literals(taken)))
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
		names := append([]regex.Expr{a.AnyText(regex.JSON), free}, s.names...)
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
		b.others = append(b.others, entry{c.quoted(key), n, false})
	}
	// Which names stand for others is not kept, so that two could be the same.
	if len(b.others) > 0 && b.minimum > 1 && b.minimum > b.needed(0)+1 {
		return fmt.Errorf("minProperties: more than one beside the required properties is not supported where further ones may have any name")
	}
	return nil
}

// passed reports whether entry j can no more be written at i: the entry that is
// next, or where they stand in any order the set of those that have been written.
func (b *branch) passed(j, i int) bool {
	if b.free {
		return i>>j&1 != 0
	}
	return j < i
}

// needed is the number of required properties from entry i on.
func (b *branch) needed(i int) int {
	n := 0
	for j, e := range b.entries {
		if e.required && !b.passed(j, i) {
			n++
		}
	}
	return n
}

// room is how many properties may stand from entry i on.
func (c *compiler) room(b *branch, i int) int {
	if slices.ContainsFunc(b.others, c.entryPossible) {
		return regex.Infinite
	}
	n := 0
	for j, e := range b.entries {
		if c.nodes[e.node].possible && !b.passed(j, i) {
			n++
		}
	}
	return n
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
	if b.maximum != regex.Infinite && (b.needed(0) > b.maximum || b.minimum > b.maximum) {
		return false
	}
	room := c.room(b, 0)
	return room == regex.Infinite || room >= b.minimum
}

// fits reports whether properties from entry i on may complete n of them.
func (c *compiler) fits(b *branch, i, n int) bool {
	if b.maximum != regex.Infinite && n+b.needed(i) > b.maximum {
		return false
	}
	room := c.room(b, i)
	return room == regex.Infinite || n+room >= b.minimum
}

// counted is a number of properties as far as it matters.
func (b *branch) counted(n int) int {
	if b.maximum == regex.Infinite {
		return min(n, b.minimum)
	}
	return n
}

// entry writes one property or more, from entry s.i on.
func (c *compiler) entry(s symbol, b *branch) [][]grammar.Symbol {
	var out [][]grammar.Symbol
	put := func(e entry, next int) {
		if n := b.counted(s.n + 1); c.nodes[e.node].possible && c.fits(b, next, s.n+1) {
			out = append(out, []grammar.Symbol{
				c.terminal(e.key, c.arena.Byte(':'), c.blank), c.symbol(symbol{kind: symValue, node: e.node}),
				c.symbol(symbol{kind: symEntries, node: s.node, branch: s.branch, i: next, n: n}),
			})
		}
	}
	for i, e := range b.entries {
		switch {
		case b.passed(i, s.i):
		case b.free:
			put(e, s.i|1<<i)
		default:
			put(e, i+1)
			if e.required {
				return out
			}
		}
	}
	for _, e := range b.others {
		if b.free {
			put(e, s.i)
		} else {
			put(e, len(b.entries))
		}
	}
	return out
}

// moreEntries goes on behind a property.
func (c *compiler) moreEntries(s symbol, b *branch) [][]grammar.Symbol {
	a := c.arena
	var out [][]grammar.Symbol
	next := s
	next.kind = symEntry
	if len(c.entry(next, b)) > 0 {
		out = append(out, []grammar.Symbol{c.terminal(a.Byte(','), c.either), c.symbol(next)})
	}
	if s.n >= b.minimum && b.needed(s.i) == 0 {
		out = append(out, []grammar.Symbol{c.terminal(c.indent, a.Byte('}'))})
	}
	return out
}
