package schema

import "fmt"

// unevaluated adds what v demands of properties and items that its other keywords
// have said nothing of, by way: of what other alternatives say, nothing counts.
func (c *solver) unevaluated(v *value, w alternatives) (alternatives, error) {
	x, y := v.get("unevaluatedProperties"), v.get("unevaluatedItems")
	if x == nil && y == nil {
		return w, nil
	}
	out := alternatives{}
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
