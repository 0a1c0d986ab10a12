package schema

import (
	"fmt"
	"slices"
)

// subschemas lists the schemas of a keyword that has several.
func (k keyword) subschemas() ([]*value, error) {
	if k.value.kind != arrays || len(k.value.items) == 0 {
		return nil, fmt.Errorf("%s: it is not a list of schemas", k.name)
	}
	return k.value.items, nil
}

func applyRef(c *solver, k keyword, _ alternatives) (alternatives, error) {
	if k.value.kind != strs {
		return nil, fmt.Errorf("$ref: it is not a string")
	}
	target, err := c.refs.find(k.of, k.value.text)
	if err != nil {
		return nil, err
	}
	w, err := c.alternatives(sub{schema: target})
	return notNil(w), err
}

func applyAll(c *solver, k keyword, _ alternatives) (alternatives, error) {
	items, err := k.subschemas()
	var s subs
	for _, item := range items {
		s = append(s, sub{schema: item})
	}
	if err != nil {
		return nil, err
	}
	w, err := c.all(s)
	return notNil(w), err
}

func applyAny(c *solver, k keyword, _ alternatives) (alternatives, error) {
	items, err := k.subschemas()
	if err != nil {
		return nil, err
	}
	var out alternatives
	for _, item := range items {
		w, err := c.alternatives(sub{schema: item})
		if err != nil {
			return nil, err
		}
		if out = append(out, w...); len(out) > mostWays {
			return nil, fmt.Errorf("anyOf: there are more than %d alternatives", mostWays)
		}
	}
	return notNil(out), nil
}

func applyNot(c *solver, k keyword, _ alternatives) (alternatives, error) {
	w, err := c.alternatives(sub{k.value, true})
	if err != nil {
		return nil, fmt.Errorf("not: %w", err)
	}
	return notNil(w), nil
}

// notNil returns w where nil would stand for anything.
func notNil(w alternatives) alternatives {
	if w == nil {
		return alternatives{}
	}
	return w
}

// applyOne treats alternatives that exclude each other as anyOf does. Others exclude each
// other once each is without the alternatives that it overlaps.
func applyOne(c *solver, k keyword, context alternatives) (alternatives, error) {
	items, err := k.subschemas()
	if err != nil {
		return nil, err
	}
	if len(items) > mostWays {
		return nil, fmt.Errorf("oneOf: there are more than %d alternatives", mostWays)
	}
	each := make([]alternatives, len(items))
	for i, item := range items {
		w, err := c.alternatives(sub{schema: item})
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
			overlap[i][j] = !apart(c, each[i], each[j])
			overlap[j][i] = overlap[i][j]
		}
		if err := c.spend(0); err != nil {
			return nil, err
		}
	}
	out := alternatives{}
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

// applyIf lists the ways to meet the schema and then, or else and not the schema.
func applyIf(c *solver, k keyword, _ alternatives) (alternatives, error) {
	v, x := k.of, k.value
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

// applyDependencies lists the ways in which each property is absent, or the properties that it
// needs are there.
func applyDependencies(c *solver, k keyword, _ alternatives) (alternatives, error) {
	key, x := k.name, k.value
	if x.kind != objects {
		return nil, fmt.Errorf("%s: it is not an object", key)
	}
	out := alternatives{anything()}
	for _, m := range x.members {
		need := anything()
		need.types = objects
		need.required = []string{m.name}
		with := alternatives{need}
		var err error
		if m.value.kind == arrays {
			names, fault := texts(key, m.value)
			if fault != nil {
				return nil, fault
			}
			need.required = append(need.required, names...)
		} else {
			var w alternatives
			if w, err = c.alternatives(sub{schema: m.value}); err != nil {
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
		if out, err = c.times(out, append(alternatives{without, other}, with...)); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return out, nil
}
