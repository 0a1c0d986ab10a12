package schema

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// ways are the shapes of which a value has to have one.
type ways []*shape

// mostWays bounds the ways to meet one schema.
const mostWays = 2048

// annotations change nothing of what is valid.
var annotations = map[string]bool{
	"$schema": true, "$id": true, "id": true, "$anchor": true, "$dynamicAnchor": true, "$defs": true, "definitions": true, "$comment": true, "title": true, "description": true,
	"default": true, "examples": true, "deprecated": true, "readOnly": true, "writeOnly": true, "contentMediaType": true, "contentEncoding": true, "contentSchema": true,
}

// unsupported are keywords that are refused.
var unsupported = []string{"$dynamicRef", "$recursiveRef", "$recursiveAnchor", "$vocabulary", "extends", "disallow", "divisibleBy"}

// times is what both demand.
func (c *compiler) times(w, o ways) (ways, error) {
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
	var out ways
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

// all are the ways to meet all schemas.
func (c *compiler) all(s subs) (ways, error) {
	out := ways{anything()}
	for _, one := range s {
		w, err := c.ways(one)
		if err != nil {
			return nil, err
		}
		if out, err = c.times(out, w); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ways are the ways to meet a schema.
func (c *compiler) ways(s sub) (ways, error) {
	if w, ok := c.known[s]; ok {
		return w, nil
	}
	if c.within[s] {
		return nil, fmt.Errorf("$ref: a schema refers to itself without a property or an item between")
	}
	c.within[s] = true
	defer delete(c.within, s)
	if err := c.spend(1); err != nil {
		return nil, err
	}
	var w ways
	var err error
	switch {
	case s.schema.kind == booleans:
		if s.schema.truth != s.not {
			w = ways{anything()}
		}
	case s.schema.kind != objects:
		return nil, fmt.Errorf("a schema is neither an object nor true nor false")
	case s.not:
		w, err = c.negated(s.schema)
		w = w.silent()
	default:
		w, err = c.keywords(s.schema)
	}
	if err == nil {
		c.known[s] = w
	}
	return w, err
}

// keywords are the ways to meet all keywords of a schema.
func (c *compiler) keywords(v *value) (ways, error) {
	factors := make([]ways, len(v.members))
	context := ways{anything()}
	var err error
	for i := range v.members { // those that hold no schemas for the same value
		if factors[i], err = c.assertion(v, v.members[i].name, v.members[i].value); err != nil {
			return nil, err
		}
		if factors[i] != nil {
			if context, err = c.times(context, factors[i]); err != nil {
				return nil, err
			}
		}
	}
	out := ways{anything()}
	for i := range v.members {
		if factors[i] == nil {
			if factors[i], err = c.applicator(v, v.members[i].name, v.members[i].value, context); err != nil {
				return nil, err
			}
		}
		if factors[i] == nil {
			continue
		}
		if out, err = c.times(out, factors[i]); err != nil {
			return nil, err
		}
	}
	return c.unevaluated(v, out)
}

// one makes a way by changing a shape that demands nothing.
func one(change func(s *shape)) ways {
	s := anything()
	change(s)
	if s = s.tidy(); s == nil {
		return ways{}
	}
	return ways{s}
}

// assertion is what a keyword demands by itself; nil: it is none that does.
func (c *compiler) assertion(v *value, key string, x *value) (ways, error) {
	fault := func() (ways, error) { return nil, fmt.Errorf("%s: it has the wrong type", key) }
	if annotations[key] {
		return nil, nil
	}
	if slices.Contains(unsupported, key) {
		return nil, fmt.Errorf("%s: the keyword is not supported", key)
	}
	if set, ok := sizes[key]; ok {
		n, ok := x.whole()
		if !ok {
			return fault()
		}
		return one(func(s *shape) { set(s, n) }), nil
	}
	switch key {
	case "type":
		return typed(x)
	case "const":
		return one(func(s *shape) { s.enum = []*value{x} }), nil
	case "enum":
		if x.kind != arrays {
			return fault()
		}
		return one(func(s *shape) { s.enum = append([]*value{}, x.items...) }), nil
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return compared(v, key, x)
	case "multipleOf":
		if x.kind != numbers || x.number.Sign() <= 0 {
			return fault()
		}
		return one(func(s *shape) { s.multiples = []*big.Rat{x.number} }), nil
	case "pattern":
		if x.kind != strs {
			return fault()
		}
		e, err := c.arena.Search(x.text, c.spelt)
		return one(func(s *shape) { s.texts = []regex.Expr{e} }), err
	case "format":
		if x.kind != strs {
			return fault()
		}
		return c.format(x.text)
	case "uniqueItems":
		if x.kind != booleans {
			return fault()
		}
		return one(func(s *shape) { s.unique = x.truth }), nil
	case "required":
		if x.kind == booleans { // of draft 3, where it stands with the property
			return nil, fmt.Errorf("required: it is not a list of names")
		}
		names, err := texts(key, x)
		return one(func(s *shape) { s.required = names }), err
	case "propertyNames":
		return c.propertyNames(x)
	case "properties", "patternProperties", "additionalProperties":
		return c.properties(v, key)
	case "prefixItems", "items", "additionalItems":
		return c.items(v, key)
	case "contains", "minContains", "maxContains":
		return c.contains(v, key)
	}
	return nil, nil
}

// sizes are keywords that count.
var sizes = map[string]func(s *shape, n int){
	"minLength":     func(s *shape, n int) { s.least = n },
	"maxLength":     func(s *shape, n int) { s.most = n },
	"minItems":      func(s *shape, n int) { s.fewest = n },
	"maxItems":      func(s *shape, n int) { s.longest = n },
	"minProperties": func(s *shape, n int) { s.minimum = n },
	"maxProperties": func(s *shape, n int) { s.maximum = n },
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

func typed(x *value) (ways, error) {
	list := []*value{x}
	if x.kind == arrays {
		list = x.items
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

// compared reads a bound; those of draft 4 are exclusive where another keyword says
// so.
func compared(v *value, key string, x *value) (ways, error) {
	r := map[string]relation{"minimum": atLeast, "maximum": atMost, "exclusiveMinimum": greater, "exclusiveMaximum": less}[key]
	if x.kind == booleans && (key == "exclusiveMinimum" || key == "exclusiveMaximum") {
		return ways{anything()}, nil
	}
	if x.kind != numbers {
		return nil, fmt.Errorf("%s: it is not a number", key)
	}
	if e := v.get("exclusiveMinimum"); key == "minimum" && e != nil && e.kind == booleans && e.truth {
		r = greater
	}
	if e := v.get("exclusiveMaximum"); key == "maximum" && e != nil && e.kind == booleans && e.truth {
		r = less
	}
	return one(func(s *shape) { s.bounds = []comparison{{r, x.number}} }), nil
}

// propertyNames are held to as texts.
func (c *compiler) propertyNames(x *value) (ways, error) {
	w, err := c.ways(sub{schema: x})
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

// properties reads the three keywords together, at the first of them.
func (c *compiler) properties(v *value, key string) (ways, error) {
	for i := range v.members {
		if k := v.members[i].name; k == "properties" || k == "patternProperties" || k == "additionalProperties" {
			if k != key {
				return ways{anything()}, nil
			}
			break
		}
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

// items reads the keywords of items together, at the first of them.
func (c *compiler) items(v *value, key string) (ways, error) {
	for i := range v.members {
		if k := v.members[i].name; k == "prefixItems" || k == "items" || k == "additionalItems" {
			if k != key {
				return ways{anything()}, nil
			}
			break
		}
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

// contains reads the keywords of contains.
func (c *compiler) contains(v *value, key string) (ways, error) {
	x := v.get("contains")
	if x == nil || key != "contains" {
		return ways{anything()}, nil
	}
	k := contained{sub: sub{schema: x}, least: 1, most: regex.Infinite}
	for _, limit := range []struct {
		name string
		to   *int
	}{{"minContains", &k.least}, {"maxContains", &k.most}} {
		if n := v.get(limit.name); n != nil {
			var ok bool
			if *limit.to, ok = n.whole(); !ok {
				return nil, fmt.Errorf("%s: it is not a number of items", limit.name)
			}
		}
	}
	if k.least == 0 && k.most == regex.Infinite {
		return ways{anything()}, nil
	}
	if k.most != regex.Infinite && k.most < k.least {
		return one(func(s *shape) { s.types &^= arrays }), nil
	}
	return one(func(s *shape) { s.contained, s.fewest = []contained{k}, k.least }), nil
}
