package schema

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// mostPatterns bounds the patterns of names that may overlap.
const mostPatterns = 8

// objects works out the properties of a branch.
func (c *graph) objects(b *branch) error {
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
		taken = append(taken, regex.Escape(name))
		if err := c.spend(1 + len(s.parts) + s.patterns()*len(name) + len(s.forbidden)/16); err != nil {
			return err
		}
		if slices.Contains(s.forbidden, name) || !mayHave(c.arena, s, name) {
			if required[name] {
				b.object = false
				return nil
			}
			continue
		}
		n, err := c.node(demanded(c.arena, s, name))
		if err != nil {
			return err
		}
		b.entries = append(b.entries, entry{key: c.key(a.Literal(regex.Escape(name))), name: name, node: n, required: required[name]})
	}
	for _, name := range s.forbidden {
		taken = append(taken, regex.Escape(name))
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

// mostOptional bounds the properties of which any may come next.
const mostOptional = 1 << 13

// arrange divides the properties that may be there once into those that stand in order
// and those that stand in any, and lets names be counted that have no order.
func (c *graph) arrange(b *branch) error {
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
	if more := b.minimum - b.needed(0); len(sets) > 0 && more > len(sets) { // names of a set differ if they fall into different buckets
		buckets := min(4*more, (mostLoose-len(singles))/len(sets))
		if buckets < more {
			return fmt.Errorf("minProperties: so many beside the required ones are not supported")
		}
		var drawn []entry
		for _, e := range sets {
			for i := range buckets {
				k := e
				k.names = c.arena.And(e.names, c.arena.HashBucket(i, buckets))
				k.key = c.key(k.names)
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
		return fmt.Errorf("patternProperties: they overlap in more than %d alternatives", mostLoose)
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

// patterns returns how many patterns of names there are.
func (s *shape) patterns() int {
	n := len(s.names)
	for i := range s.parts {
		n += len(s.parts[i].patterns)
	}
	return n
}

// mayHave reports whether a property may have that name.
func mayHave(a *regex.Arena, s *shape, name string) bool {
	return !slices.ContainsFunc(s.names, func(e regex.Expr) bool { return !a.Matches(e, regex.Escape(name)) })
}

// otherEntries works out the properties that are not named: by the patterns that
// their names match, and those that they do not. Names of a pattern that has few are looked at one by one.
func (c *graph) otherEntries(b *branch, free regex.Expr) error {
	s, a := b.shape, c.arena
	var patterns []regex.Expr
	var listed []string
	for _, p := range s.parts {
		for _, q := range p.patterns {
			if few, ok := a.Enumerate([]regex.Expr{q.expr}, mostListed); ok && len(listed)+len(few) <= mostListed {
				listed = append(listed, few...)
			} else if !slices.Contains(patterns, q.expr) {
				patterns = append(patterns, q.expr)
			}
		}
	}
	if len(patterns) > mostPatterns {
		return fmt.Errorf("patternProperties: more than %d patterns of many names are not supported", mostPatterns)
	}
	slices.Sort(listed)
	listed = slices.Compact(listed)
	allowed := append([]regex.Expr{a.AnyText(regex.JSON), free, a.Not(c.never)}, s.names...)
	for _, name := range listed {
		if err := c.spend(len(name) * (len(allowed) + s.patterns())); err != nil {
			return err
		}
		if slices.ContainsFunc(allowed, func(e regex.Expr) bool { return !a.Matches(e, name) }) {
			continue
		}
		if err := c.otherEntry(b, []regex.Expr{a.Literal(name)}, func(pattern regex.Expr) bool { return a.Matches(pattern, name) }); err != nil {
			return err
		}
	}
	if len(listed) > 0 {
		allowed = append(allowed, a.Not(a.Literals(listed)))
	}
	for set := range 1 << len(patterns) {
		names := slices.Clone(allowed)
		for i, p := range patterns {
			if set>>i&1 == 0 {
				p = a.Not(p)
			}
			names = append(names, p)
		}
		matches := func(pattern regex.Expr) bool {
			i := slices.Index(patterns, pattern)
			return i >= 0 && set>>i&1 != 0
		}
		if err := c.otherEntry(b, names, matches); err != nil {
			return err
		}
	}
	return nil
}

// otherEntry adds the properties that have all of names, and so match the patterns that matches tells.
func (c *graph) otherEntry(b *branch, names []regex.Expr, matches func(pattern regex.Expr) bool) error {
	s, a := b.shape, c.arena
	var all subs
	for _, p := range s.parts {
		matched := false
		for _, q := range p.patterns {
			if matches(q.expr) {
				all, matched = append(all, q.sub), true
			}
		}
		if !matched && p.others != nil {
			all = append(all, *p.others)
		}
	}
	if slices.ContainsFunc(all, func(s sub) bool { return s.schema.kind == booleans && s.schema.truth == s.negated }) {
		return nil
	}
	key := a.And(names...)
	if key == regex.None {
		return nil
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
		b.last = append(b.last, entry{key: c.key(key), names: key, node: n})
		if key = a.And(append(names, a.Not(s.last.names))...); key != regex.None {
			if n, err = c.node(all); err != nil {
				return err
			}
			b.after = append(b.after, entry{key: c.key(key), names: key, node: n})
		}
	}
	if few, ok := a.Enumerate(names, mostListed); ok {
		for _, text := range few {
			b.others = append(b.others, entry{key: c.key(a.Literal(text)), name: unescaped(text), names: a.Literal(text), node: n, single: true})
		}
		return nil
	}
	b.others = append(b.others, entry{key: c.key(key), names: key, node: n})
	return nil
}

// mostListed bounds the names that are written out where a pattern has no more.
const mostListed = 256

// unescaped returns a text that JSON writes so within a string.
func unescaped(text string) string {
	var out string
	if json.Unmarshal([]byte(`"`+text+`"`), &out) != nil {
		return text
	}
	return out
}
