package schema

import (
	"fmt"
	"slices"
)

// applicator is what a keyword demands that applies schemas to the value itself;
// nil: it is none. context is what the other keywords demand.
func (c *compiler) applicator(v *value, key string, x *value, context ways) (ways, error) {
	switch key {
	case "$ref":
		if x.kind != strs {
			return nil, fmt.Errorf("$ref: it is not a string")
		}
		target, err := c.refs.find(v, x.text)
		if err != nil {
			return nil, err
		}
		w, err := c.ways(sub{schema: target})
		return notNil(w), err
	case "allOf", "anyOf", "oneOf":
		if x.kind != arrays || len(x.items) == 0 {
			return nil, fmt.Errorf("%s: it is not a list of schemas", key)
		}
		if key == "oneOf" {
			return c.oneOf(x.items, context)
		}
		if key == "allOf" {
			var s subs
			for _, item := range x.items {
				s = append(s, sub{schema: item})
			}
			w, err := c.all(s)
			return notNil(w), err
		}
		var out ways
		for _, item := range x.items {
			w, err := c.ways(sub{schema: item})
			if err != nil {
				return nil, err
			}
			if out = append(out, w...); len(out) > mostWays {
				return nil, fmt.Errorf("anyOf: there are more than %d alternatives", mostWays)
			}
		}
		return notNil(out), nil
	case "not":
		w, err := c.ways(sub{x, true})
		if err != nil {
			return nil, fmt.Errorf("not: %w", err)
		}
		return notNil(w), nil
	case "if":
		return c.conditional(v, x)
	case "dependencies", "dependentRequired", "dependentSchemas":
		return c.dependencies(key, x)
	}
	return nil, nil
}

func notNil(w ways) ways {
	if w == nil {
		return ways{}
	}
	return w
}

// conditional is the schema and then, or neither it nor the way without else.
func (c *compiler) conditional(v, x *value) (ways, error) {
	yes, no := subs{{schema: x}}, subs{{x, true}}
	if t := v.get("then"); t != nil {
		yes = append(yes, sub{schema: t})
	}
	if e := v.get("else"); e != nil {
		no = append(no, sub{schema: e})
	}
	if len(yes)+len(no) == 2 {
		return nil, nil
	}
	a, err := c.all(yes)
	if err != nil {
		return nil, fmt.Errorf("if: %w", err)
	}
	b, err := c.all(no)
	if err != nil {
		return nil, fmt.Errorf("if: %w", err)
	}
	return notNil(slices.Concat(a, b)), nil
}

// dependencies: each property is absent, or there is what it needs.
func (c *compiler) dependencies(key string, x *value) (ways, error) {
	if x.kind != objects {
		return nil, fmt.Errorf("%s: it is not an object", key)
	}
	out := ways{anything()}
	for _, m := range x.members {
		need := anything()
		need.types = objects
		need.required = []string{m.name}
		with := ways{need}
		var err error
		if m.value.kind == arrays {
			names, fault := texts(key, m.value)
			if fault != nil {
				return nil, fault
			}
			need.required = append(need.required, names...)
		} else {
			var w ways
			if w, err = c.ways(sub{schema: m.value}); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			if with, err = c.times(with, w); err != nil {
				return nil, err
			}
		}
		other, without := anything(), anything()
		other.types &^= objects
		without.types = objects
		without.forbidden = []string{m.name}
		if out, err = c.times(out, append(ways{without, other}, with...)); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return out, nil
}

// oneOf: alternatives that exclude each other are as good as anyOf; others exclude
// each other once each is without those that it overlaps.
func (c *compiler) oneOf(items []*value, context ways) (ways, error) {
	if len(items) > mostWays {
		return nil, fmt.Errorf("oneOf: there are more than %d alternatives", mostWays)
	}
	each := make([]ways, len(items))
	for i, item := range items {
		w, err := c.ways(sub{schema: item})
		if err == nil {
			w, err = c.times(w, context)
		}
		if err != nil {
			return nil, err
		}
		each[i] = w
	}
	overlap := make([][]bool, len(items))
	for i := range items {
		overlap[i] = make([]bool, len(items))
		for j := range i {
			overlap[i][j] = !c.apart(each[i], each[j])
			overlap[j][i] = overlap[i][j]
		}
		if err := c.spend(0); err != nil {
			return nil, err
		}
	}
	out := ways{}
	for i, item := range items {
		s := subs{{schema: item}}
		for j, other := range items {
			if overlap[i][j] {
				s = append(s, sub{other, true})
			}
			if err := c.spend(0); err != nil {
				return nil, err
			}
		}
		w, err := c.all(s)
		if err != nil {
			return nil, fmt.Errorf("oneOf: the alternatives overlap: %w", err)
		}
		out = append(out, w...)
		if len(out) > mostWays {
			return nil, fmt.Errorf("oneOf: there are more than %d alternatives", mostWays)
		}
	}
	return out, nil
}

// apart reports whether no value can have a shape of both.
func (c *compiler) apart(a, b ways) bool {
	for _, x := range a {
		for _, y := range b {
			if c.spend(1+(x.size()+y.size())/16) != nil {
				return false
			}
			if s := x.and(y); s != nil && !c.impossible(s, 3) {
				return false
			}
		}
	}
	return true
}

// impossible reports whether it is plain that no value has the shape.
func (c *compiler) impossible(s *shape, depth int) bool {
	possible := s.types
	if s.enum != nil {
		possible = 0
		for _, v := range s.enum {
			if v.kind != strs || c.allows(s, v.text) {
				possible |= v.kind
			}
		}
	}
	if possible&objects != 0 && depth > 0 {
		for _, name := range s.required {
			if c.spend(len(s.parts)) != nil {
				return false
			}
			if c.contradictory(c.of(s, name), depth-1) {
				possible &^= objects
				break
			}
		}
	}
	if possible&arrays != 0 && depth > 0 && s.fewest > 0 && c.contradictory(s.item(0), depth-1) {
		possible &^= arrays
	}
	return possible == 0
}

// contradictory reports whether it is plain that no value meets all schemas.
func (c *compiler) contradictory(s subs, depth int) bool {
	if c.spend(8) != nil {
		return false
	}
	w, err := c.all(s)
	if err != nil {
		return false
	}
	for _, s := range w {
		if !c.impossible(s, depth) {
			return false
		}
	}
	return true
}

// allows reports whether a text meets what s demands of strings.
func (c *compiler) allows(s *shape, text string) bool {
	return c.arena.Matches(c.content(s), c.spell(text))
}

// of is what s demands of a property.
func (c *compiler) of(s *shape, name string) subs {
	var out subs
	for i := range s.parts {
		all, _ := s.parts[i].of(c.arena, name)
		out = append(out, all...)
	}
	return out
}

// item is what s demands of an item.
func (s *shape) item(i int) subs {
	var out subs
	for _, l := range s.lists {
		if i < len(l.prefix) {
			out = append(out, l.prefix[i])
		} else if l.rest != nil {
			out = append(out, *l.rest)
		}
	}
	return out
}

// unevaluated adds what v demands of properties and items that its other keywords
// have said nothing of, by way: of what other alternatives say, nothing counts.
func (c *compiler) unevaluated(v *value, w ways) (ways, error) {
	x, y := v.get("unevaluatedProperties"), v.get("unevaluatedItems")
	if x == nil && y == nil {
		return w, nil
	}
	out := ways{}
	for _, s := range w {
		n := anything()
		if x != nil {
			p := part{others: &sub{schema: x}}
			for _, q := range s.parts {
				if q.silent {
					continue
				}
				for _, m := range q.named {
					p.named = append(p.named, property{m.name, sub{schema: trueSchema}})
				}
				for _, m := range q.patterns {
					p.patterns = append(p.patterns, pattern{m.source, m.expr, sub{schema: trueSchema}})
				}
				if q.others != nil {
					p.others = nil
				}
			}
			n.parts = []part{p}
		}
		if y != nil {
			if len(s.contained) > 0 {
				return nil, fmt.Errorf("unevaluatedItems: beside contains it is not supported")
			}
			l := list{rest: &sub{schema: y}}
			for _, k := range s.lists {
				if k.silent {
					continue
				}
				for len(l.prefix) < len(k.prefix) {
					l.prefix = append(l.prefix, sub{schema: trueSchema})
				}
				if k.rest != nil {
					l.rest = nil
				}
			}
			n.lists = []list{l}
		}
		if s = s.and(n); s != nil {
			out = append(out, s)
		}
	}
	return out, nil
}

var trueSchema = &value{kind: booleans, truth: true}
