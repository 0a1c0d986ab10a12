package schema

import (
	"errors"
	"fmt"
	"slices"
)

// alternatives are the shapes of which a value has to have one.
type alternatives []*shape

// mostWays bounds the alternatives of one schema.
const mostWays = 2048

// times lists the ways to meet one of w and one of o.
func (c *solver) times(w, o alternatives) (alternatives, error) {
	work := 0
	for _, a := range w {
		work += len(o) * (1 + a.size()/16)
	}
	for _, b := range o {
		work += len(w) * (b.size() / 16)
	}
	if err := c.spend(work); err != nil {
		return nil, err
	}
	if len(w)*len(o) > 64*mostWays {
		return nil, fmt.Errorf("anyOf: the alternatives are too many")
	}
	var out alternatives
	for _, a := range w {
		for _, b := range o {
			if s := a.and(b); s != nil {
				out = append(out, s)
			}
		}
	}
	if len(out) > mostWays {
		return nil, fmt.Errorf("anyOf: there are more than %d alternatives", mostWays)
	}
	return out, nil
}

// all lists the ways to meet all schemas.
func (c *solver) all(s subs) (alternatives, error) {
	out := alternatives{anything()}
	for _, one := range s {
		w, err := c.alternatives(one)
		if err != nil {
			return nil, err
		}
		if out, err = c.times(out, w); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// alternatives lists the ways to meet a schema, or its complement.
func (c *solver) alternatives(s sub) (alternatives, error) {
	if w, ok := c.known[s]; ok {
		return w, nil
	}
	if c.within[s] {
		return nil, errItself
	}
	c.within[s] = true
	defer delete(c.within, s)
	if err := c.spend(1); err != nil {
		return nil, err
	}
	var w alternatives
	var err error
	switch {
	case s.schema.kind == booleans:
		if s.schema.truth != s.negated {
			w = alternatives{anything()}
		}
	case s.schema.kind != objects:
		return nil, fmt.Errorf("a schema is neither an object nor true nor false")
	case s.negated:
		if w, err = c.negate(s.schema); err == nil {
			w = w.silent()
		}
	default:
		w, err = c.assert(s.schema)
	}
	if err == nil {
		c.known[s] = w
	}
	return w, err
}

// errItself says that a schema has to be met for itself to be met.
var errItself = errors.New("$ref: a schema refers to itself without a property or an item between")

// meetable reports whether a property or an item may meet s, as far as that is known: where it
// is within s, it may.
func (c *solver) meetable(s sub) (bool, error) {
	w, err := c.alternatives(s)
	if errors.Is(err, errItself) {
		return true, nil
	}
	return len(w) > 0, err
}

// one makes an alternative by changing a shape that demands nothing.
func one(change func(s *shape)) alternatives {
	s := anything()
	change(s)
	if s = s.tidy(); s == nil {
		return alternatives{}
	}
	return alternatives{s}
}

// only makes an alternative of one type.
func only(t types, change func(s *shape)) alternatives {
	return one(func(s *shape) { s.types = t; change(s) })
}

// silent copies w so that unevaluated keywords learn nothing of it: what fails a schema
// has not been evaluated by it.
func (w alternatives) silent() alternatives {
	out := make(alternatives, len(w))
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
