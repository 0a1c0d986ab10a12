package schema

import (
	"math/big"
	"slices"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// sub is a schema within the schema, or its complement.
type sub struct {
	schema  *value
	negated bool
}

// subs are schemas that all hold.
type subs []sub

// shape holds the demands that one way to meet a schema makes on values, by their type.
type shape struct {
	types types
	enum  []*value // the only values; nil: no such list
	ofNumbers
	ofStrings
	ofArrays
	ofObjects
}

// ofNumbers are the demands on numbers.
type ofNumbers struct {
	integer   bool // only integers
	bounds    []comparison
	multiples []*big.Rat
	others    []*big.Rat // of which they are no multiples
}

func (s *ofNumbers) and(o *ofNumbers) ofNumbers {
	return ofNumbers{s.integer || o.integer, join(s.bounds, o.bounds), join(s.multiples, o.multiples), join(s.others, o.others)}
}

// ofStrings are the demands on strings.
type ofStrings struct {
	least, most int // characters; regex.Infinite
	texts       []regex.Expr
}

func (s *ofStrings) and(o *ofStrings) ofStrings {
	return ofStrings{max(s.least, o.least), fewer(s.most, o.most), join(s.texts, o.texts)}
}

// ofArrays are the demands on lists.
type ofArrays struct {
	lists     []list
	fewest    int
	longest   int // regex.Infinite
	unique    bool
	contained []contained
}

func (s *ofArrays) and(o *ofArrays) ofArrays {
	return ofArrays{join(s.lists, o.lists), max(s.fewest, o.fewest), fewer(s.longest, o.longest), s.unique || o.unique, join(s.contained, o.contained)}
}

// ofObjects are the demands on objects.
type ofObjects struct {
	parts     []part
	required  []string
	names     []regex.Expr // all names match
	minimum   int          // of properties
	maximum   int          // regex.Infinite
	forbidden []string     // names that do not occur
	some      []some
	last      *some // that choose has left to be met by a property without a name of its own
}

func (s *ofObjects) and(o *ofObjects) ofObjects {
	return ofObjects{
		parts: join(s.parts, o.parts), required: join(s.required, o.required), names: join(s.names, o.names), minimum: max(s.minimum, o.minimum),
		maximum: fewer(s.maximum, o.maximum), forbidden: join(s.forbidden, o.forbidden), some: join(s.some, o.some),
	}
}

// contained says how many items from one on meet a schema.
type contained struct {
	sub
	from        int
	least, most int // regex.Infinite
}

// some says that there is a property whose name matches and whose value meets schemas.
type some struct {
	names regex.Expr
	all   subs
}

// list holds the demands of one schema on items.
type list struct {
	prefix []sub
	rest   *sub // of the others; nil: nothing
	silent bool // what it names does not count as evaluated
}

// part holds the demands of one schema on properties.
type part struct {
	named    []property
	at       map[string]int // of names, where each occurs once; nil: not known
	patterns []pattern
	others   *sub // of those that neither names nor matches; nil: nothing
	silent   bool // what it names does not count as evaluated
}

type property struct {
	name string
	sub
}

type pattern struct {
	source string
	expr   regex.Expr
	sub
}

func anything() *shape {
	return &shape{types: everyType, ofStrings: ofStrings{most: regex.Infinite}, ofArrays: ofArrays{longest: regex.Infinite}, ofObjects: ofObjects{maximum: regex.Infinite}}
}

// and returns what both demand, nil if they contradict each other.
func (s *shape) and(o *shape) *shape {
	n := &shape{
		types: s.types & o.types, enum: s.enum, ofNumbers: s.ofNumbers.and(&o.ofNumbers), ofStrings: s.ofStrings.and(&o.ofStrings),
		ofArrays: s.ofArrays.and(&o.ofArrays), ofObjects: s.ofObjects.and(&o.ofObjects),
	}
	if o.enum != nil {
		n.enum = o.enum
		if s.enum != nil {
			n.enum = both(s.enum, o.enum)
		}
	}
	return n.tidy()
}

// size returns about how much work it is to combine s with another shape.
func (s *shape) size() int {
	return len(s.enum) + len(s.bounds) + len(s.texts) + len(s.lists) + len(s.parts) + len(s.required)*(1+len(s.forbidden)) + len(s.names)
}

// both returns the values of two lists.
func both(a, b []*value) []*value {
	simple := map[string]bool{} // of strings
	for _, w := range b {
		if w.kind == strs {
			simple[w.text] = true
		}
	}
	out := []*value{}
	for _, v := range a {
		if v.kind == strs && simple[v.text] || v.kind != strs && inList(b, v) {
			out = append(out, v)
		}
	}
	return out
}

// tidy leaves out types that nothing can have, and is nil if none is left.
func (s *shape) tidy() *shape {
	if s.enum != nil {
		kept := make([]*value, 0, len(s.enum))
		var held types
		for _, v := range s.enum {
			if s.types&v.kind != 0 && s.admits(v) {
				kept = append(kept, v)
				held |= v.kind
			}
		}
		s.enum, s.types = kept, s.types&held
	}
	if !s.mayHaveNumber() {
		s.types &^= numbers
	}
	if s.most != regex.Infinite && s.least > s.most {
		s.types &^= strs
	}
	if s.longest != regex.Infinite && s.fewest > s.longest {
		s.types &^= arrays
	}
	if s.maximum != regex.Infinite && s.minimum > s.maximum || slices.ContainsFunc(s.forbidden, func(name string) bool { return slices.Contains(s.required, name) }) {
		s.types &^= objects
	}
	if s.types == 0 {
		return nil
	}
	return s
}

// admits checks what is quickly checked of a value of an enumeration; the rest is
// left to the grammar.
func (s *shape) admits(v *value) bool {
	if v.kind != numbers {
		return true
	}
	return s.admitsNumber(v.number)
}

func join[T any](a, b []T) []T {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	return slices.Concat(a, b)
}

// fewer returns the smaller of two upper bounds.
func fewer(a, b int) int {
	if a == regex.Infinite || b != regex.Infinite && b < a {
		return b
	}
	return a
}

// knows reports whether p names the property, or has a pattern for it, and what it
// demands of it.
func (p *part) of(a *regex.Arena, name string) (all subs, knows bool) {
	if i, ok := p.at[name]; ok {
		all, knows = append(all, p.named[i].sub), true
	} else if p.at == nil {
		for _, n := range p.named {
			if n.name == name {
				all, knows = append(all, n.sub), true
			}
		}
	}
	text := regex.Escape(name)
	for _, n := range p.patterns {
		if a.Matches(n.expr, text) {
			all, knows = append(all, n.sub), true
		}
	}
	if !knows && p.others != nil {
		all = append(all, *p.others)
	}
	return all, knows
}

// item lists what s demands of item i.
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
