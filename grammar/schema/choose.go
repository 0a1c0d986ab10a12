package schema

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// mostChosen bounds the ways to choose properties that meet what some has to.
const mostChosen = 256

// choose finds a property for each demand that some property meets it: one with a name in the schema, one of a few, or
// another, which comes last.
func (c *solver) choose(s *shape) ([]*shape, error) {
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
	few, ok := c.arena.Enumerate(append([]regex.Expr{c.arena.AnyText(regex.JSON), k.names}, s.names...), mostListed)
	for _, text := range few {
		names = append(names, unescaped(text))
	}
	var out []*shape
	add := func(s *shape) error {
		if s = s.tidy(); s == nil || s.types&objects == 0 {
			return nil
		}
		more, err := c.choose(s)
		if out = append(out, more...); len(out) > mostChosen {
			return fmt.Errorf("there are more than %d alternatives for some property not to meet it", mostChosen)
		}
		return err
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] || slices.Contains(s.forbidden, name) || !c.arena.Matches(k.names, regex.Escape(name)) {
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
