package schema

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// somewhere are objects with a property whose name matches and whose value meets a
// schema.
func (c *compiler) somewhere(names regex.Expr, s sub) (ways, error) {
	w, err := c.ways(s)
	if err != nil || len(w) == 0 {
		return nil, err
	}
	return only(objects, func(o *shape) { o.some = []some{{names, subs{s}}} }), nil
}

// failingOthers are objects with a property that additionalProperties rules out.
func (c *compiler) failingOthers(v, x *value) (ways, error) {
	var named []string
	if p := v.get("properties"); p != nil {
		for _, m := range p.members {
			named = append(named, regex.Spell(m.name))
		}
	}
	known := []regex.Expr{c.arena.Literals(named)}
	if p := v.get("patternProperties"); p != nil {
		for _, m := range p.members {
			e, err := c.arena.Search(m.name, regex.JSON)
			if err != nil {
				return nil, err
			}
			known = append(known, e)
		}
	}
	return c.somewhere(c.arena.Not(c.arena.Or(known...)), sub{x, true})
}

// failingItems are lists of which an item fails the schema of its place.
func (c *compiler) failingItems(schemas []*value) (ways, error) {
	var out ways
	var before []sub
	for i, x := range schemas {
		if _, err := c.ways(sub{x, true}); err != nil {
			return nil, err
		}
		l := list{prefix: append(before[:i:i], sub{x, true})}
		out = append(out, only(arrays, func(s *shape) { s.lists, s.fewest = []list{l}, i+1 })...)
		before = append(before, sub{schema: trueSchema})
	}
	return out, nil
}

// containing are lists that contain so many items.
func (c *compiler) containing(k contained) (ways, error) {
	if w, err := c.ways(k.sub); err != nil || len(w) == 0 && k.least > 0 {
		return nil, err
	}
	return only(arrays, func(s *shape) { s.contained, s.fewest = []contained{k}, k.from+k.least }), nil
}

// failingCount are lists that contain too few or too many items.
func (c *compiler) failingCount(v, x *value) (ways, error) {
	least, most := 1, regex.Infinite
	if n := v.get("minContains"); n != nil {
		least, _ = n.whole()
	}
	if n := v.get("maxContains"); n != nil {
		most, _ = n.whole()
	}
	var out ways
	switch {
	case least == 1:
		out = only(arrays, func(s *shape) { s.lists = []list{{rest: &sub{x, true}}} })
	case least > 1:
		out = only(arrays, func(s *shape) { s.contained = []contained{{sub{schema: x}, 0, 0, least - 1}} })
	}
	if most != regex.Infinite {
		w, err := c.containing(contained{sub{schema: x}, 0, most + 1, regex.Infinite})
		if err != nil {
			return nil, err
		}
		out = append(out, w...)
	}
	return out, nil
}

// failingOne are the values that meet none of several schemas, or two of them.
func (c *compiler) failingOne(items []*value) (ways, error) {
	var none subs
	for _, item := range items {
		none = append(none, sub{item, true})
	}
	out, err := c.all(none)
	if err != nil {
		return nil, err
	}
	for i, x := range items {
		for _, y := range items[:i] {
			w, err := c.all(subs{{schema: x}, {schema: y}})
			if err != nil {
				return nil, err
			}
			for _, s := range w {
				if !c.impossible(s, 3) {
					out = append(out, s)
				}
			}
			if len(out) > mostWays {
				return nil, fmt.Errorf("oneOf: there are more than %d alternatives", mostWays)
			}
			if err := c.spend(0); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// failingConditional are the values that meet if and not then, or neither if nor else.
func (c *compiler) failingConditional(v, x *value) (ways, error) {
	var out ways
	for _, k := range []struct {
		name      string
		condition sub
	}{{"then", sub{schema: x}}, {"else", sub{x, true}}} {
		if t := v.get(k.name); t != nil {
			w, err := c.all(subs{k.condition, {t, true}})
			if err != nil {
				return nil, err
			}
			out = append(out, w...)
		}
	}
	return out, nil
}

// failingDependencies are objects with a property and without what it needs.
func (c *compiler) failingDependencies(x *value) (ways, error) {
	var out ways
	for _, m := range x.members {
		has := only(objects, func(s *shape) { s.required = []string{m.name} })
		var lacks ways
		if m.value.kind == arrays {
			for _, name := range m.value.items {
				lacks = append(lacks, only(objects, func(s *shape) { s.forbidden = []string{name.text} })...)
			}
		} else {
			var err error
			if lacks, err = c.ways(sub{m.value, true}); err != nil {
				return nil, err
			}
		}
		w, err := c.times(has, lacks)
		if err != nil {
			return nil, err
		}
		out = append(out, w...)
	}
	return out, nil
}

// unlike are the ways to be another value than a list or an object.
func (c *compiler) unlike(v *value) ways {
	out := one(func(s *shape) { s.types &^= v.kind })
	same := func(v *value) sub { return sub{&value{kind: objects, members: []member{{"const", v}}}, true} }
	n := len(v.items)
	if v.kind == arrays {
		if n > 0 {
			out = append(out, only(arrays, func(s *shape) { s.longest = n - 1 })...)
		}
		out = append(out, only(arrays, func(s *shape) { s.fewest = n + 1 })...)
		var before []sub
		for i, item := range v.items {
			l := list{prefix: append(before[:i:i], same(item))}
			out = append(out, only(arrays, func(s *shape) { s.lists, s.fewest = []list{l}, i+1 })...)
			before = append(before, sub{schema: trueSchema})
		}
		return out
	}
	out = append(out, only(objects, func(s *shape) { s.minimum = len(v.members) + 1 })...)
	for _, m := range v.members {
		out = append(out, only(objects, func(s *shape) { s.forbidden = []string{m.name} })...)
		other := property{m.name, same(m.value)}
		out = append(out, only(objects, func(s *shape) { s.required, s.parts = []string{m.name}, []part{{named: []property{other}}} })...)
	}
	return out
}

// mostChosen bounds the ways to choose properties that meet what some has to.
const mostChosen = 256

// choose says of each demand that some property meets it which that is: one that has a
// name in the schema, or is one of a few, or another, which comes last.
func (c *compiler) choose(s *shape) ([]*shape, error) {
	if len(s.some) == 0 {
		return []*shape{s}, nil
	}
	k := s.some[0]
	rest := *s
	rest.some = s.some[1:]
	var names []string
	for _, p := range s.parts {
		for _, n := range p.named {
			names = append(names, n.name)
		}
	}
	names = append(names, s.required...)
	few, ok := c.arena.Few(append([]regex.Expr{c.arena.AnyText(regex.JSON), k.names}, s.names...), mostListed)
	for _, text := range few {
		names = append(names, unspelt(text))
	}
	var out []*shape
	add := func(s *shape) error {
		if s = s.tidy(); s == nil || s.types&objects == 0 {
			return nil
		}
		more, err := c.choose(s)
		if out = append(out, more...); len(out) > mostChosen {
			return fmt.Errorf("there are more than %d ways for some property not to meet it", mostChosen)
		}
		return err
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] || slices.Contains(s.forbidden, name) || !c.arena.Matches(k.names, regex.Spell(name)) {
			continue
		}
		seen[name] = true
		one := rest
		one.required = join(rest.required, []string{name})
		p := part{silent: true}
		for _, s := range k.all {
			p.named = append(p.named, property{name, s})
		}
		one.parts = join(rest.parts, []part{p})
		if err := add(&one); err != nil {
			return nil, err
		}
	}
	if !ok {
		last := &some{k.names, k.all}
		if s.last != nil {
			c.narrowed = true
			last = &some{c.arena.And(k.names, s.last.names), slices.Concat(k.all, s.last.all)}
		}
		rest.last = last
		if err := add(&rest); err != nil {
			return nil, err
		}
	}
	return out, nil
}
