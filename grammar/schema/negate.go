package schema

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// negated are the ways not to meet a schema: to fail one of its keywords.
func (c *compiler) negated(v *value) (ways, error) {
	out := ways{}
	for i := range v.members {
		key, x := v.members[i].name, v.members[i].value
		if annotations[key] {
			continue
		}
		w, err := c.failing(v, key, x)
		if err != nil {
			return nil, err
		}
		out = append(out, w...)
	}
	if len(out) > mostWays {
		return nil, fmt.Errorf("there are more than %d alternatives", mostWays)
	}
	return out, nil
}

// only makes a way of one type.
func only(t types, change func(s *shape)) ways {
	return one(func(s *shape) { s.types = t; change(s) })
}

// failing are the ways not to meet one keyword.
func (c *compiler) failing(v *value, key string, x *value) (ways, error) {
	if _, err := c.assertion(v, key, x); err != nil {
		return nil, err
	}
	n, _ := x.whole()
	switch key {
	case "type":
		w, err := typed(x)
		if err != nil {
			return nil, err
		}
		out := one(func(s *shape) { s.types &^= w[0].types })
		if w[0].integer {
			out = append(out, only(numbers, func(s *shape) { s.others = []*big.Rat{big.NewRat(1, 1)} })...)
		}
		return out, nil
	case "const":
		return c.otherThan([]*value{x})
	case "enum":
		return c.otherThan(x.items)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		w, err := compared(v, key, x)
		if err != nil || len(w[0].bounds) == 0 {
			return nil, err
		}
		b := w[0].bounds[0]
		b.relation = b.relation.opposite()
		return only(numbers, func(s *shape) { s.bounds = []comparison{b} }), nil
	case "pattern":
		e, err := c.arena.Search(x.text, c.spelt)
		return only(strs, func(s *shape) { s.texts = []regex.Expr{c.arena.Not(e)} }), err
	case "minLength":
		if n == 0 {
			return nil, nil
		}
		return only(strs, func(s *shape) { s.most = n - 1 }), nil
	case "maxLength":
		return only(strs, func(s *shape) { s.least = n + 1 }), nil
	case "minItems":
		if n == 0 {
			return nil, nil
		}
		return only(arrays, func(s *shape) { s.longest = n - 1 }), nil
	case "maxItems":
		return only(arrays, func(s *shape) { s.fewest = n + 1 }), nil
	case "minProperties":
		if n == 0 {
			return nil, nil
		}
		return only(objects, func(s *shape) { s.maximum = n - 1 }), nil
	case "maxProperties":
		return only(objects, func(s *shape) { s.minimum = n + 1 }), nil
	case "required":
		names, err := texts(key, x)
		var out ways
		for _, name := range names {
			out = append(out, only(objects, func(s *shape) { s.forbidden = []string{name} })...)
		}
		return out, err
	case "properties":
		var out ways
		for _, m := range x.members {
			if _, err := c.ways(sub{m.value, true}); err != nil {
				return nil, err
			}
			out = append(out, only(objects, func(s *shape) {
				s.required = []string{m.name}
				s.parts = []part{{named: []property{{m.name, sub{m.value, true}}}}}
			})...)
		}
		return out, nil
	case "additionalProperties":
		return c.failingOthers(v, x)
	case "patternProperties":
		var out ways
		for _, m := range x.members {
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
	case "propertyNames":
		w, err := c.ways(sub{x, true})
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
	case "prefixItems":
		return c.failingItems(x.items)
	case "items", "additionalItems":
		from, first := 0, v.get("prefixItems")
		switch {
		case key == "items" && x.kind == arrays:
			return c.failingItems(x.items)
		case key == "additionalItems":
			if first = v.get("items"); first == nil || first.kind != arrays {
				return nil, nil
			}
		}
		if first != nil {
			from = len(first.items)
		}
		return c.containing(contained{sub{x, true}, from, 1, regex.Infinite})
	case "contains":
		return c.failingCount(v, x)
	case "minContains", "maxContains":
		return nil, nil // belong to contains
	case "format":
		return c.unformatted(x.text)
	case "multipleOf":
		return only(numbers, func(s *shape) { s.others = []*big.Rat{x.number} }), nil
	case "oneOf":
		return c.failingOne(x.items)
	case "if":
		return c.failingConditional(v, x)
	case "dependencies", "dependentRequired", "dependentSchemas":
		return c.failingDependencies(x)
	case "uniqueItems":
		if !x.truth {
			return nil, nil
		}
	case "not":
		return c.ways(sub{schema: x})
	case "$ref":
		target, err := c.refs.find(v, x.text)
		if err != nil {
			return nil, err
		}
		return c.ways(sub{target, true})
	case "allOf":
		var out ways
		for _, item := range x.items {
			w, err := c.ways(sub{item, true})
			if err != nil {
				return nil, err
			}
			out = append(out, w...)
		}
		return out, nil
	case "anyOf":
		var s subs
		for _, item := range x.items {
			s = append(s, sub{item, true})
		}
		return c.all(s)
	case "then", "else":
		return nil, nil // belong to if
	case "unevaluatedProperties", "unevaluatedItems":
	default:
		return nil, nil // an annotation
	}
	return nil, fmt.Errorf("the complement of %s is not supported", key)
}

// otherThan are the ways to be none of the values.
func (c *compiler) otherThan(values []*value) (ways, error) {
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
			literals = append(literals, c.arena.Text(v.text, c.spelt))
		}
	}
	if len(literals) > 0 {
		rest.texts = []regex.Expr{c.arena.Not(c.arena.Or(literals...))}
	}
	out := ways{rest}
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
		if out, err = c.times(out, c.unlike(v)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// silent are ways from which unevaluated keywords learn nothing: what fails a schema
// has not been evaluated by it.
func (w ways) silent() ways {
	out := make(ways, len(w))
	for i, s := range w {
		k := *s
		k.parts, k.lists = slices.Clone(s.parts), slices.Clone(s.lists)
		for j := range k.parts {
			k.parts[j].silent = true
		}
		for j := range k.lists {
			k.lists[j].silent = true
		}
		out[i] = &k
	}
	return out
}
