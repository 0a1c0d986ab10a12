package schema

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// first reports whether k stands before the others of names in its schema.
func (k keyword) first(names ...string) bool {
	i := slices.IndexFunc(k.of.members, func(m member) bool { return slices.Contains(names, m.name) })
	return k.of.members[i].name == k.name
}

// counted names the parts of a value whose number keywords bound.
type counted struct {
	of          types
	least, most func(s *shape) *int
}

var (
	characters = counted{strs, func(s *shape) *int { return &s.least }, func(s *shape) *int { return &s.most }}
	items      = counted{arrays, func(s *shape) *int { return &s.fewest }, func(s *shape) *int { return &s.longest }}
	properties = counted{objects, func(s *shape) *int { return &s.minimum }, func(s *shape) *int { return &s.maximum }}
)

// from returns the meaning of a lower bound.
func (n counted) from() meaning {
	return meaning{assert: n.bound(n.least), negate: func(_ *solver, k keyword) (alternatives, error) {
		least, _ := k.value.natural()
		if least == 0 {
			return nil, nil
		}
		return only(n.of, func(s *shape) { *n.most(s) = least - 1 }), nil
	}}
}

// to returns the meaning of an upper bound.
func (n counted) to() meaning {
	return meaning{assert: n.bound(n.most), negate: func(_ *solver, k keyword) (alternatives, error) {
		most, _ := k.value.natural()
		return only(n.of, func(s *shape) { *n.least(s) = most + 1 }), nil
	}}
}

func (counted) bound(of func(s *shape) *int) func(c *solver, k keyword) (alternatives, error) {
	return func(_ *solver, k keyword) (alternatives, error) {
		n, ok := k.value.natural()
		if !ok {
			return nil, k.fault()
		}
		return one(func(s *shape) { *of(s) = n }), nil
	}
}

func assertType(_ *solver, k keyword) (alternatives, error) {
	list := []*value{k.value}
	if k.value.kind == arrays {
		list = k.value.items
	}
	var set types
	integers, all := false, false
	for _, item := range list {
		t, ok := typeNames[item.text]
		if item.kind != strs || !ok {
			return nil, fmt.Errorf("type: %q is no type", item.text)
		}
		set |= t
		integers = integers || item.text == "integer"
		all = all || item.text == "number"
	}
	return one(func(s *shape) { s.types, s.integer = set, integers && !all }), nil
}

func assertConst(_ *solver, k keyword) (alternatives, error) {
	return one(func(s *shape) { s.enum = []*value{k.value} }), nil
}

func assertEnum(_ *solver, k keyword) (alternatives, error) {
	if k.value.kind != arrays {
		return nil, k.fault()
	}
	return one(func(s *shape) { s.enum = append([]*value{}, k.value.items...) }), nil
}

// assertBound reads a bound; in draft 4 another keyword makes it exclusive.
func assertBound(_ *solver, k keyword) (alternatives, error) {
	x := k.value
	r := map[string]relation{"minimum": atLeast, "maximum": atMost, "exclusiveMinimum": greater, "exclusiveMaximum": less}[k.name]
	if x.kind == booleans && (r == greater || r == less) {
		return alternatives{anything()}, nil
	}
	if x.kind != numbers {
		return nil, fmt.Errorf("%s: it is not a number", k.name)
	}
	if e := k.of.get("exclusiveMinimum"); r == atLeast && e != nil && e.kind == booleans && e.truth {
		r = greater
	}
	if e := k.of.get("exclusiveMaximum"); r == atMost && e != nil && e.kind == booleans && e.truth {
		r = less
	}
	return one(func(s *shape) { s.bounds = []comparison{{r, x.number}} }), nil
}

func assertMultiple(_ *solver, k keyword) (alternatives, error) {
	if k.value.kind != numbers || k.value.number.Sign() <= 0 {
		return nil, k.fault()
	}
	return one(func(s *shape) { s.multiples = []*big.Rat{k.value.number} }), nil
}

func assertPattern(c *solver, k keyword) (alternatives, error) {
	if k.value.kind != strs {
		return nil, k.fault()
	}
	e, err := c.arena.Search(k.value.text, c.quoting)
	return one(func(s *shape) { s.texts = []regex.Expr{e} }), err
}

func assertFormat(c *solver, k keyword) (alternatives, error) {
	if k.value.kind != strs {
		return nil, k.fault()
	}
	return c.format(k.value.text)
}

func assertUnique(_ *solver, k keyword) (alternatives, error) {
	if k.value.kind != booleans {
		return nil, k.fault()
	}
	return one(func(s *shape) { s.unique = k.value.truth }), nil
}

func assertRequired(_ *solver, k keyword) (alternatives, error) {
	names, err := texts(k.name, k.value) // of draft 3, it is true or false with the property
	return one(func(s *shape) { s.required = names }), err
}

// texts reads a list of strings.
func texts(key string, x *value) ([]string, error) {
	if x.kind != arrays {
		return nil, fmt.Errorf("%s: it is not a list of names", key)
	}
	var out []string
	seen := map[string]bool{}
	for _, item := range x.items {
		if item.kind != strs {
			return nil, fmt.Errorf("%s: it is not a list of names", key)
		}
		if !seen[item.text] {
			seen[item.text] = true
			out = append(out, item.text)
		}
	}
	return out, nil
}

// assertNames holds the names of properties to what their schema says of texts.
func assertNames(c *solver, k keyword) (alternatives, error) {
	w, err := c.alternatives(sub{schema: k.value})
	if err != nil {
		return nil, fmt.Errorf("propertyNames: %w", err)
	}
	var names []regex.Expr
	for _, s := range w {
		if s.types&strs != 0 {
			names = append(names, c.content(s))
		}
	}
	if len(names) == 0 {
		return one(func(s *shape) { s.maximum = 0 }), nil
	}
	e := c.arena.Or(names...)
	return one(func(s *shape) { s.names = []regex.Expr{e} }), nil
}

// assertProperties reads the three keywords together, at the first of them.
func assertProperties(c *solver, k keyword) (alternatives, error) {
	v := k.of
	if !k.first("properties", "patternProperties", "additionalProperties") {
		return alternatives{anything()}, nil
	}
	var p part
	if x := v.get("properties"); x != nil {
		if x.kind != objects {
			return nil, fmt.Errorf("properties: it is not an object")
		}
		for _, m := range x.members {
			p.named = append(p.named, property{m.name, sub{schema: m.value}})
		}
	}
	if x := v.get("patternProperties"); x != nil {
		if x.kind != objects {
			return nil, fmt.Errorf("patternProperties: it is not an object")
		}
		for _, m := range x.members {
			e, err := c.arena.Search(m.name, regex.JSON)
			if err != nil {
				return nil, fmt.Errorf("patternProperties: %w", err)
			}
			p.patterns = append(p.patterns, pattern{m.name, e, sub{schema: m.value}})
		}
	}
	if x := v.get("additionalProperties"); x != nil {
		p.others = &sub{schema: x}
	}
	if p.at = map[string]int{}; len(p.named) > 0 {
		for i, n := range p.named {
			p.at[n.name] = i
		}
	}
	return one(func(s *shape) { s.parts = []part{p} }), nil
}

// assertItems reads the keywords of items together, at the first of them.
func assertItems(_ *solver, k keyword) (alternatives, error) {
	v := k.of
	if !k.first("prefixItems", "items", "additionalItems") {
		return alternatives{anything()}, nil
	}
	var l list
	rest := v.get("items")
	prefix := v.get("prefixItems")
	if prefix == nil && rest != nil && rest.kind == arrays { // as before draft 2020-12
		prefix, rest = rest, v.get("additionalItems")
	}
	if prefix != nil {
		if prefix.kind != arrays {
			return nil, fmt.Errorf("prefixItems: it is not a list")
		}
		for _, item := range prefix.items {
			l.prefix = append(l.prefix, sub{schema: item})
		}
	}
	if rest != nil {
		l.rest = &sub{schema: rest}
	}
	return one(func(s *shape) { s.lists = []list{l} }), nil
}

// assertContains reads the keywords of contains, at contains.
func assertContains(_ *solver, at keyword) (alternatives, error) {
	if at.name != "contains" {
		return alternatives{anything()}, nil
	}
	k := contained{sub: sub{schema: at.value}, least: 1, most: regex.Infinite}
	for _, limit := range []struct {
		name string
		to   *int
	}{{"minContains", &k.least}, {"maxContains", &k.most}} {
		if n := at.of.get(limit.name); n != nil {
			var ok bool
			if *limit.to, ok = n.natural(); !ok {
				return nil, fmt.Errorf("%s: it is not a number of items", limit.name)
			}
		}
	}
	if k.least == 0 && k.most == regex.Infinite {
		return alternatives{anything()}, nil
	}
	if k.most != regex.Infinite && k.most < k.least {
		return one(func(s *shape) { s.types &^= arrays }), nil
	}
	return one(func(s *shape) { s.contained, s.fewest = []contained{k}, k.least }), nil
}
