package schema

import (
	"fmt"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// mostChoices bounds the values of which a grammar counts which have been used.
const mostChoices = 62

// holdApart holds the items of a list apart. Few values are counted by the rules; of
// many, the reader of the text remembers those that are there (grammar.Lists), which
// takes that each is written in one way.
func holdApart(c *graph, b *branch) error {
	fault := fmt.Errorf("uniqueItems: it is supported for items that are few values, or strings, numbers, booleans and null alone, all of one schema")
	if len(b.prefix) > 0 || b.counting != nil {
		return fault
	}
	alternatives, err := c.all(b.shape.item(0))
	if err != nil {
		return err
	}
	values, few, err := fewValues(&c.solver, alternatives)
	if err != nil {
		return err
	}
	if few {
		b.longest = fewer(b.longest, len(values))
		b.choices = []regex.Expr{}
		for _, v := range values {
			b.choices = append(b.choices, c.literal(v))
		}
		return nil
	}
	if c.quoting == regex.Raw {
		return fault
	}
	var all []regex.Expr
	for _, s := range alternatives {
		if s.enum != nil || s.types&^(nulls|booleans|strs|numbers) != 0 {
			return fault
		}
		some := *s
		some.types &^= numbers
		e, err := c.scalars(&some)
		if err != nil {
			return err
		}
		if all = append(all, e); s.types&numbers != 0 {
			if e, err = c.inOneWay(s); err != nil {
				return err
			}
			all = append(all, e)
		}
	}
	b.differ = c.arena.Or(all...)
	c.differ = true
	return nil
}

// fewValues returns the values of items, where those are few.
func fewValues(c *solver, alternatives alternatives) (values []*value, few bool, err error) {
	for _, s := range alternatives {
		list := s.enum
		if list == nil {
			if s.types&^(nulls|booleans|strs) != 0 {
				return nil, false, nil
			}
			if s.types&strs != 0 {
				texts, ok := c.arena.Enumerate(append([]regex.Expr{c.arena.Texts(s.least, s.most, c.quoting)}, s.texts...), mostChoices)
				if !ok || c.quoting == regex.Raw {
					return nil, false, nil
				}
				for _, text := range texts {
					list = append(list, &value{kind: strs, text: unescaped(text)})
				}
			}
			if s.types&nulls != 0 {
				list = append(list, &value{kind: nulls})
			}
			if s.types&booleans != 0 {
				list = append(list, &value{kind: booleans, truth: true}, &value{kind: booleans})
			}
		}
		for _, v := range list {
			ok, err := meets(c, s, v)
			if err != nil {
				return nil, false, err
			}
			if ok && !inList(values, v) {
				values = append(values, v)
			}
			if len(values) > mostChoices {
				return nil, false, nil
			}
		}
	}
	return values, true, nil
}

// numeral is a number in the one way to write it without an exponent.
const numeral = `-?(0|[1-9]\d*)(\.\d*[1-9])?`

// inOneWay matches the numbers of a shape, each as numeral has it.
func (c *writing) inOneWay(s *shape) (regex.Expr, error) {
	e, err := c.number(s)
	if err != nil {
		return regex.None, err
	}
	one, err := c.arena.Match(numeral, regex.Raw)
	if err != nil {
		return regex.None, err
	}
	return c.arena.And(e, one, c.arena.Not(c.arena.Literal("-0"))), nil
}

// Differ implements grammar.Lists.
func (c *compiler) Differ() func(grammar.Symbol) bool {
	if !c.differ {
		return nil
	}
	return func(id grammar.Symbol) bool {
		s := c.symbols[id]
		return s.kind == symItems && c.nodes[s.node].branches[s.branch].differ != regex.None
	}
}
