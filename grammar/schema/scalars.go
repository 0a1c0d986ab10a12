package schema

import (
	"fmt"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// content matches what stands between the quotes of a string.
func (c *writing) content(s *shape) regex.Expr {
	a := c.arena
	all := append([]regex.Expr{a.Texts(s.least, s.most, c.quoting)}, s.texts...)
	if c.never != regex.None {
		all = append(all, a.Not(c.never))
	}
	if s.enum != nil {
		var literals []string
		for _, v := range s.enum {
			if v.kind == strs {
				literals = append(literals, c.escaped(v.text))
			}
		}
		all = append(all, a.Literals(literals))
	}
	return a.And(all...)
}

// spelled is content in every spelling, where no pattern wants one.
func (c *writing) spelled(s *shape) (regex.Expr, error) {
	if c.quoting == regex.Raw || len(s.texts) > 0 || c.never != regex.None {
		return c.content(s), nil
	}
	return c.arena.Spelled(s.least, s.most)
}

// escaped returns a text as strings have it.
func (c *writing) escaped(text string) string {
	if c.quoting == regex.Raw {
		return text
	}
	return regex.Escape(text)
}

// quoted returns a string with that content.
func (c *writing) quoted(content regex.Expr) regex.Expr {
	quote := c.quote
	switch {
	case c.quoting != regex.Raw:
		quote = c.arena.Byte('"')
	case quote == regex.None:
		return content
	}
	return c.arena.Seq(quote, content, quote)
}

// bareName is a property's name that stands without quotes: JSON writes it as it is.
const bareName = `[^\x00-\x1f":,{}\[\]<>|\\]{1,256}`

// key returns the name of a property, one of names, as JSON writes it.
func (c *writing) key(names regex.Expr) regex.Expr {
	if c.quoting != regex.Raw || c.quote == regex.None {
		return c.quoted(names)
	}
	bare, err := c.arena.Match(bareName, regex.Raw)
	if err != nil {
		return regex.None
	}
	return c.arena.And(names, bare)
}

// word returns how a truth or null is written.
func (c *writing) word(json string) string {
	if !c.python {
		return json
	}
	return map[string]string{"true": "True", "false": "False", "null": "None"}[json]
}

// scalars matches the values of a shape that hold no others. Lists and objects of
// an enumeration are among them.
func (c *solver) scalars(s *shape) (regex.Expr, error) {
	a := c.arena
	if s.enum != nil {
		return c.enumerated(s)
	}
	var es []regex.Expr
	if s.types&nulls != 0 {
		es = append(es, a.Literal(c.word("null")))
	}
	if s.types&booleans != 0 {
		es = append(es, a.Literal(c.word("true")), a.Literal(c.word("false")))
	}
	if s.types&numbers != 0 {
		e, err := c.number(s)
		if err != nil {
			return regex.None, err
		}
		es = append(es, e)
	}
	if s.types&strs != 0 {
		text, err := c.spelled(s)
		if err != nil {
			return regex.None, err
		}
		es = append(es, c.quoted(text))
	}
	return a.Or(es...), nil
}

// enumerated matches the values of an enumeration that s admits.
func (c *solver) enumerated(s *shape) (regex.Expr, error) {
	var literals []string
	var es []regex.Expr
	texts := c.content(&shape{ofStrings: s.ofStrings})
	var strings []string
	for _, v := range s.enum {
		switch {
		case v.kind == strs:
			if text := c.escaped(v.text); c.never == regex.None && len(s.texts) == 0 && s.least == 0 && s.most == regex.Infinite || c.arena.Matches(texts, text) {
				strings = append(strings, text)
			}
		case v.kind == nulls:
			literals = append(literals, c.word("null"))
		case v.kind == booleans && v.truth:
			literals = append(literals, c.word("true"))
		case v.kind == booleans:
			literals = append(literals, c.word("false"))
		case v.kind == numbers:
			literals = append(literals, numerals(v)...)
		default:
			others := *s
			others.enum = nil
			ok, err := meets(c, &others, v)
			if err == nil {
				err = c.spend(4)
			}
			if err != nil {
				return regex.None, err
			}
			if ok {
				es = append(es, c.literal(v))
			}
		}
	}
	return c.arena.Or(append(es, c.arena.Literals(literals), c.quoted(c.arena.Literals(strings)))...), nil
}

// numerals returns the texts of a number: as the schema writes it, and without a fraction
// or an exponent if it is an integer that is written with one.
func numerals(v *value) []string {
	if plain := v.number.RatString(); v.number.IsInt() && plain != v.text {
		return []string{v.text, plain}
	}
	return []string{v.text}
}

// literal matches the texts of one value.
func (c *writing) literal(v *value) regex.Expr {
	a := c.arena
	switch v.kind {
	case nulls:
		return a.Literal(c.word("null"))
	case booleans:
		return a.Literal(c.word(fmt.Sprint(v.truth)))
	case numbers:
		return a.Literals(numerals(v))
	case strs:
		return c.quoted(a.Literal(c.escaped(v.text)))
	case arrays:
		es := []regex.Expr{a.Byte('['), c.indent}
		for i, item := range v.items {
			if i > 0 {
				es = append(es, a.Byte(','), c.either)
			}
			es = append(es, c.literal(item))
		}
		if len(v.items) == 0 {
			return a.Literal("[]")
		}
		return a.Seq(append(es, c.indent, a.Byte(']'))...)
	}
	es := []regex.Expr{a.Byte('{'), c.indent}
	for i, m := range v.members {
		if i > 0 {
			es = append(es, a.Byte(','), c.either)
		}
		es = append(es, c.key(a.Literal(regex.Escape(m.name))), a.Byte(':'), c.blank, c.literal(m.value))
	}
	if len(v.members) == 0 {
		return a.Literal("{}")
	}
	return a.Seq(append(es, c.indent, a.Byte('}'))...)
}

// meets reports whether a value meets a shape.
func meets(c *solver, s *shape, v *value) (bool, error) {
	if s.types&v.kind == 0 || s.enum != nil && !inList(s.enum, v) || !s.admits(v) {
		return false, nil
	}
	switch v.kind {
	case strs:
		return c.allows(s, v.text), nil
	case arrays:
		return meetsList(c, s, v)
	case objects:
		return meetsObject(c, s, v)
	}
	return true, nil
}

// meetsAll reports whether a value meets all schemas.
func meetsAll(c *solver, all subs, v *value) (bool, error) {
	w, err := c.all(all)
	if err != nil {
		return false, err
	}
	for _, s := range w {
		if ok, err := meets(c, s, v); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func meetsList(c *solver, s *shape, v *value) (bool, error) {
	if len(v.items) < s.fewest || s.longest != regex.Infinite && len(v.items) > s.longest {
		return false, nil
	}
	for i, item := range v.items {
		if s.unique && inList(v.items[:i], item) {
			return false, nil
		}
		if ok, err := meetsAll(c, s.item(i), item); !ok || err != nil {
			return false, err
		}
	}
	for _, k := range s.contained {
		found := 0
		for _, item := range v.items[min(k.from, len(v.items)):] {
			ok, err := meetsAll(c, subs{k.sub}, item)
			if err != nil {
				return false, err
			}
			if ok {
				found++
			}
		}
		if found < k.least || k.most != regex.Infinite && found > k.most {
			return false, nil
		}
	}
	return true, nil
}

func meetsObject(c *solver, s *shape, v *value) (bool, error) {
	if len(v.members) < s.minimum || s.maximum != regex.Infinite && len(v.members) > s.maximum {
		return false, nil
	}
	for _, name := range s.required {
		if v.get(name) == nil {
			return false, nil
		}
	}
	for _, name := range s.forbidden {
		if v.get(name) != nil {
			return false, nil
		}
	}
	for _, m := range v.members {
		for _, e := range s.names {
			if !c.arena.Matches(e, regex.Escape(m.name)) {
				return false, nil
			}
		}
		if ok, err := meetsAll(c, demanded(c.arena, s, m.name), m.value); !ok || err != nil {
			return false, err
		}
	}
	for _, k := range s.some {
		found := false
		for _, m := range v.members {
			if c.arena.Matches(k.names, regex.Escape(m.name)) {
				ok, err := meetsAll(c, k.all, m.value)
				if err != nil {
					return false, err
				}
				found = found || ok
			}
		}
		if !found {
			return false, nil
		}
	}
	return true, nil
}

// allows reports whether a text meets what s demands of strings.
func (c *writing) allows(s *shape, text string) bool {
	return c.arena.Matches(c.content(s), c.escaped(text))
}
