package schema

import (
	"fmt"
	"math/big"

	"github.com/lutra-lm/lutra/grammar/regex"
)

func negateType(c *solver, k keyword) (alternatives, error) {
	w, err := assertType(c, k)
	if err != nil {
		return nil, err
	}
	out := one(func(s *shape) { s.types &^= w[0].types })
	if w[0].integer {
		out = append(out, only(numbers, func(s *shape) { s.others = []*big.Rat{big.NewRat(1, 1)} })...)
	}
	return out, nil
}

// otherThan lists the ways to be none of the values.
func (c *solver) otherThan(values []*value) (alternatives, error) {
	rest := anything()
	var literals []regex.Expr
	truths := map[bool]bool{true: true, false: true}
	for _, v := range values {
		switch v.kind {
		case nulls:
			rest.types &^= nulls
		case booleans:
			delete(truths, v.truth)
		case numbers:
			rest.bounds = append(rest.bounds, comparison{unequal, v.number})
		case strs:
			literals = append(literals, c.arena.Text(v.text, c.quoting))
		}
	}
	if len(literals) > 0 {
		rest.texts = []regex.Expr{c.arena.Not(c.arena.Or(literals...))}
	}
	out := alternatives{rest}
	if len(truths) < 2 {
		rest.types &^= booleans
		for _, truth := range []bool{false, true} {
			if truths[truth] {
				out = append(out, only(booleans, func(s *shape) { s.enum = []*value{{kind: booleans, truth: truth}} })...)
			}
		}
	}
	for _, v := range values {
		if v.kind&(arrays|objects) == 0 {
			continue
		}
		var err error
		if out, err = c.times(out, unlike(v)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func negateBound(c *solver, k keyword) (alternatives, error) {
	w, err := assertBound(c, k)
	if err != nil || len(w[0].bounds) == 0 {
		return nil, err
	}
	b := w[0].bounds[0]
	b.relation = b.relation.opposite()
	return only(numbers, func(s *shape) { s.bounds = []comparison{b} }), nil
}

func negateMultiple(_ *solver, k keyword) (alternatives, error) {
	return only(numbers, func(s *shape) { s.others = []*big.Rat{k.value.number} }), nil
}

func negatePattern(c *solver, k keyword) (alternatives, error) {
	e, err := c.arena.Search(k.value.text, c.quoting)
	return only(strs, func(s *shape) { s.texts = []regex.Expr{c.arena.Not(e)} }), err
}

func negateFormat(c *solver, k keyword) (alternatives, error) { return c.unformatted(k.value.text) }

func negateUnique(_ *solver, k keyword) (alternatives, error) {
	if !k.value.truth {
		return nil, nil
	}
	return nil, k.noComplement()
}

func negatePrefix(c *solver, k keyword) (alternatives, error) { return c.failingItem(k.value.items) }

func negateItems(c *solver, k keyword) (alternatives, error) {
	if k.value.kind == arrays { // as before draft 2020-12
		return c.failingItem(k.value.items)
	}
	return c.failingBehind(k.of.get("prefixItems"), k.value)
}

func negateAdditionalItems(c *solver, k keyword) (alternatives, error) {
	first := k.of.get("items")
	if first == nil || first.kind != arrays {
		return nil, nil
	}
	return c.failingBehind(first, k.value)
}

// failingBehind allows lists of which an item after those that have schemas of their own, if
// there are such, fails the schema x.
func (c *solver) failingBehind(first, x *value) (alternatives, error) {
	from := 0
	if first != nil {
		from = len(first.items)
	}
	return c.containing(contained{sub{x, true}, from, 1, regex.Infinite})
}

// failingItem allows lists of which an item fails the schema of its place.
func (c *solver) failingItem(schemas []*value) (alternatives, error) {
	var out alternatives
	var before []sub
	for i, x := range schemas {
		if _, err := c.meetable(sub{x, true}); err != nil {
			return nil, err
		}
		l := list{prefix: append(before[:i:i], sub{x, true})}
		out = append(out, only(arrays, func(s *shape) { s.lists, s.fewest = []list{l}, i+1 })...)
		before = append(before, sub{schema: trueSchema})
	}
	return out, nil
}

// containing allows lists that contain as many items as k says.
func (c *solver) containing(k contained) (alternatives, error) {
	if may, err := c.meetable(k.sub); err != nil || !may && k.least > 0 {
		return nil, err
	}
	return only(arrays, func(s *shape) { s.contained, s.fewest = []contained{k}, k.from+k.least }), nil
}

// negateContains allows lists that contain too few or too many items.
func negateContains(c *solver, k keyword) (alternatives, error) {
	v, x := k.of, k.value
	least, most := 1, regex.Infinite
	if n := v.get("minContains"); n != nil {
		least, _ = n.natural()
	}
	if n := v.get("maxContains"); n != nil {
		most, _ = n.natural()
	}
	var out alternatives
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

func negateRequired(_ *solver, k keyword) (alternatives, error) {
	names, err := texts(k.name, k.value)
	var out alternatives
	for _, name := range names {
		out = append(out, only(objects, func(s *shape) { s.forbidden = []string{name} })...)
	}
	return out, err
}

func negateProperties(c *solver, k keyword) (alternatives, error) {
	var out alternatives
	for _, m := range k.value.members {
		if _, err := c.meetable(sub{m.value, true}); err != nil {
			return nil, err
		}
		out = append(out, only(objects, func(s *shape) {
			s.required = []string{m.name}
			s.parts = []part{{named: []property{{m.name, sub{m.value, true}}}}}
		})...)
	}
	return out, nil
}

func negatePatterns(c *solver, k keyword) (alternatives, error) {
	var out alternatives
	for _, m := range k.value.members {
		e, err := c.arena.Search(m.name, regex.JSON)
		if err != nil {
			return nil, err
		}
		w, err := c.somewhere(e, sub{m.value, true})
		if err != nil {
			return nil, err
		}
		out = append(out, w...)
	}
	return out, nil
}

// negateAdditional lists objects with a property that additionalProperties rules out.
func negateAdditional(c *solver, k keyword) (alternatives, error) {
	v := k.of
	var named []string
	if p := v.get("properties"); p != nil {
		for _, m := range p.members {
			named = append(named, regex.Escape(m.name))
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
	return c.somewhere(c.arena.Not(c.arena.Or(known...)), sub{k.value, true})
}

func negateNames(c *solver, k keyword) (alternatives, error) {
	w, err := c.alternatives(sub{k.value, true})
	var names []regex.Expr
	for _, s := range w {
		if s.types&strs != 0 {
			names = append(names, c.content(s))
		}
	}
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return c.somewhere(c.arena.Or(names...), sub{schema: trueSchema})
}

// somewhere lists objects with a property whose name matches and whose value meets a
// schema.
func (c *solver) somewhere(names regex.Expr, s sub) (alternatives, error) {
	if may, err := c.meetable(s); err != nil || !may {
		return nil, err
	}
	return only(objects, func(o *shape) { o.some = []some{{names, subs{s}}} }), nil
}

// negateDependencies lists objects with a property and without what it needs.
func negateDependencies(c *solver, k keyword) (alternatives, error) {
	var out alternatives
	for _, m := range k.value.members {
		has := only(objects, func(s *shape) { s.required = []string{m.name} })
		var lacks alternatives
		if m.value.kind == arrays {
			for _, name := range m.value.items {
				lacks = append(lacks, only(objects, func(s *shape) { s.forbidden = []string{name.text} })...)
			}
		} else {
			var err error
			if lacks, err = c.alternatives(sub{m.value, true}); err != nil {
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

func negateRef(c *solver, k keyword) (alternatives, error) {
	target, err := c.refs.find(k.of, k.value.text)
	if err != nil {
		return nil, err
	}
	return c.alternatives(sub{target, true})
}

func negateAll(c *solver, k keyword) (alternatives, error) {
	items, err := k.subschemas()
	var out alternatives
	for _, item := range items {
		w, err := c.alternatives(sub{item, true})
		if err != nil {
			return nil, err
		}
		out = append(out, w...)
	}
	return out, err
}

func negateAny(c *solver, k keyword) (alternatives, error) {
	items, err := k.subschemas()
	if err != nil {
		return nil, err
	}
	var s subs
	for _, item := range items {
		s = append(s, sub{item, true})
	}
	return c.all(s)
}

// negateOne lists the ways to meet none of several schemas, or two of them.
func negateOne(c *solver, k keyword) (alternatives, error) {
	items, err := k.subschemas()
	if err != nil {
		return nil, err
	}
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
				if !impossible(c, s, 3) {
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

func negateNot(c *solver, k keyword) (alternatives, error) {
	return c.alternatives(sub{schema: k.value})
}

// negateIf lists the ways to meet if and not then, or neither if nor else.
func negateIf(c *solver, at keyword) (alternatives, error) {
	v, x := at.of, at.value
	var out alternatives
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

// unlike lists the ways to be another value than v, which is a list or an object.
func unlike(v *value) alternatives {
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
