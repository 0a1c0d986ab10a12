package schema

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/grammar/regex"
)

var (
	errNoSchema = errors.New("a schema is neither an object nor true nor false")
	errApplied  = fmt.Errorf("more than %d schemas are applied within each other", mostApplied)
)

// marks are the properties and items that schemas have evaluated.
type marks struct {
	names    map[string]bool
	items    map[int]bool
	allNames bool
	first    int // items from the first on
	allItems bool
}

func (m *marks) name(name string) {
	if m.names == nil {
		m.names = map[string]bool{}
	}
	m.names[name] = true
}

func (m *marks) item(i int) {
	if m.items == nil {
		m.items = map[int]bool{}
	}
	m.items[i] = true
}

func (m *marks) add(o marks) {
	for name := range o.names {
		m.name(name)
	}
	for i := range o.items {
		m.item(i)
	}
	m.allNames, m.allItems, m.first = m.allNames || o.allNames, m.allItems || o.allItems, max(m.first, o.first)
}

// meets applies a schema to a value.
func (e *evaluation) meets(s, v *value, at *path) (m marks, err error) {
	if e.depth++; e.depth > mostApplied {
		return m, errApplied
	}
	defer func() { e.depth-- }()
	if err := e.budget.Work(applySteps); err != nil {
		return m, err
	}
	if s.kind == booleans {
		if !s.truth {
			return m, at.mismatch("it is not allowed")
		}
		return m, nil
	}
	demands, err := e.demands(s)
	if err != nil {
		return m, err
	}
	for _, d := range demands {
		if err := e.demand(d, v, at, &m); err != nil {
			return m, err
		}
	}
	for _, k := range s.members {
		if e.legacy && k.name != "$ref" && e.targets[s] != nil {
			continue
		}
		if err := e.apply(keyword{s, k.name, k.value}, v, at, &m); err != nil {
			return m, err
		}
	}
	return m, e.unevaluated(s, v, at, &m)
}

// applySteps is the price of applying a schema, without its keywords.
const applySteps = 8

// also applies a schema to the same value as another, and adds what it has evaluated.
func (e *evaluation) also(s, v *value, at *path, m *marks) error {
	more, err := e.meets(s, v, at)
	if err == nil && e.marks {
		if err = e.budget.Work(len(more.names) + len(more.items)); err == nil {
			m.add(more)
		}
	}
	return err
}

// demand checks what a keyword asserts, with the schemas of properties and items.
func (e *evaluation) demand(d demand, v *value, at *path, m *marks) error {
	s := d.shape
	if s == nil {
		return e.unmet(d, v, at)
	}
	if s.types&v.kind == 0 {
		return e.unmet(d, v, at)
	}
	if s.enum != nil {
		return e.among(d, v, at)
	}
	ok := true
	switch v.kind {
	case numbers:
		ok = s.admitsNumber(v.number)
	case strs:
		ok = e.text(s, v.text)
	case arrays:
		return e.list(d, v, at, m)
	case objects:
		return e.object(d, v, at, m)
	}
	if err := e.budget.Work(1 + len(v.text)/64); err != nil {
		return err
	}
	if err := e.solver.arena.Err(); err != nil {
		return err
	}
	if !ok {
		return e.unmet(d, v, at)
	}
	return nil
}

func (e *evaluation) text(s *shape, text string) bool {
	for _, expr := range s.texts {
		if !e.solver.arena.Matches(expr, text) {
			return false
		}
	}
	if s.least == 0 && s.most == regex.Infinite {
		return true
	}
	n := utf8.RuneCountInString(text)
	return n >= s.least && (s.most == regex.Infinite || n <= s.most)
}

func (e *evaluation) among(d demand, v *value, at *path) error {
	list, ok := e.lists[d.value]
	if !ok {
		list = map[string]bool{}
		for _, other := range d.shape.enum {
			key, err := e.key(other)
			if err != nil {
				return err
			}
			list[key] = true
		}
		e.lists[d.value] = list
	}
	key, err := e.key(v)
	if err == nil && !list[key] {
		err = e.unmet(d, v, at)
	}
	return err
}

func (e *evaluation) list(d demand, v *value, at *path, m *marks) error {
	s := d.shape
	if len(v.items) < s.fewest || s.longest != regex.Infinite && len(v.items) > s.longest {
		if d.name != "contains" {
			return e.unmet(d, v, at)
		}
	}
	if s.unique {
		there := map[string]bool{}
		for i, item := range v.items {
			key, err := e.key(item)
			if err != nil {
				return err
			}
			if there[key] {
				return at.item(i).mismatch("it is there twice")
			}
			there[key] = true
		}
	}
	for _, l := range s.lists {
		for i, item := range v.items {
			of := l.rest
			if i < len(l.prefix) {
				of = &l.prefix[i]
			}
			if of == nil {
				break
			}
			if _, err := e.meets(of.schema, item, at.item(i)); err != nil {
				return err
			}
		}
		m.first = max(m.first, len(l.prefix))
		m.allItems = m.allItems || l.rest != nil
	}
	if d.name == "contains" {
		return e.contains(d, v, at, m)
	}
	return nil
}

// contains counts the items that meet a schema.
func (e *evaluation) contains(d demand, v *value, at *path, m *marks) error {
	least, most := 0, regex.Infinite // which demand nothing, and all that meet it have been evaluated
	if len(d.shape.contained) > 0 {
		least, most = d.shape.contained[0].least, d.shape.contained[0].most
	}
	found := 0
	for i, item := range v.items {
		_, err := e.meets(d.value, item, at.item(i))
		switch {
		case err == nil:
			found++
			if e.marks {
				m.item(i)
			}
		case !mismatched(err):
			return err
		}
	}
	if found < least || most != regex.Infinite && found > most {
		return at.mismatch("%d of its items meet contains", found)
	}
	return nil
}

// mismatched reports whether an error says that a value does not match, and no more.
func mismatched(err error) bool {
	var m *Mismatch
	return errors.As(err, &m)
}

func (e *evaluation) object(d demand, v *value, at *path, m *marks) error {
	s := d.shape
	if n := len(v.members); n < s.minimum || s.maximum != regex.Infinite && n > s.maximum {
		return e.unmet(d, v, at)
	}
	if len(s.required) > 0 {
		if err := e.has(v, s.required, at); err != nil {
			return err
		}
	}
	for i := range s.parts {
		p := &s.parts[i]
		for _, member := range v.members {
			if err := e.budget.Work(1 + len(p.patterns)); err != nil {
				return err
			}
			all, knows := p.of(e.solver.arena, member.name)
			if err := e.solver.arena.Err(); err != nil {
				return err
			}
			for _, of := range all {
				if _, err := e.meets(of.schema, member.value, at.to(member.name)); err != nil {
					return err
				}
			}
			if e.marks && knows {
				m.name(member.name)
			}
		}
		m.allNames = m.allNames || p.others != nil
	}
	return nil
}

// has checks that an object has properties.
func (e *evaluation) has(v *value, names []string, at *path) error {
	there, err := e.named(v)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !there[name] {
			return at.mismatch("it has no property %.80q", name)
		}
	}
	return e.budget.Work(len(names))
}

// named returns the names of an object's properties.
func (e *evaluation) named(v *value) (map[string]bool, error) {
	if there, ok := e.names[v]; ok {
		return there, nil
	}
	if err := e.budget.Work(1 + len(v.members)); err != nil {
		return nil, err
	}
	if err := e.budget.Hold(keyBytes * (1 + len(v.members))); err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(v.members))
	for _, m := range v.members {
		there[m.name] = true
	}
	e.names[v] = there
	return there, nil
}

// unmet says that a value does not meet a keyword.
func (e *evaluation) unmet(d demand, v *value, at *path) error {
	return at.mismatch("%s does not meet %s", brief(v), strings.TrimSpace(d.name+" "+currentText(d.value)))
}

// currentText returns a keyword's value as text, if it is short.
func currentText(v *value) string {
	if v.kind&(arrays|objects) != 0 {
		return ""
	}
	return brief(v)
}

// brief writes a value in a few words.
func brief(v *value) string {
	const most = 60
	switch v.kind {
	case nulls:
		return "null"
	case booleans:
		return strconv.FormatBool(v.truth)
	case numbers:
		return fmt.Sprintf("%.*s", most, v.text)
	case strs:
		return fmt.Sprintf("%.*q", most, v.text)
	case arrays:
		return fmt.Sprintf("a list of %d", len(v.items))
	}
	return fmt.Sprintf("an object of %d", len(v.members))
}

// key returns a text that equal values share, and no others.
func (e *evaluation) key(v *value) (string, error) {
	if k, ok := e.keys[v]; ok {
		return k, nil
	}
	var b strings.Builder
	switch v.kind {
	case nulls:
		b.WriteByte('n')
	case booleans:
		b.WriteString(strconv.FormatBool(v.truth))
	case numbers:
		b.WriteString(v.number.RatString())
	case strs:
		b.WriteString(strconv.Quote(v.text))
	case arrays:
		b.WriteByte('[')
		for _, item := range v.items {
			k, err := e.key(item)
			if err != nil {
				return "", err
			}
			b.WriteString(k)
			b.WriteByte(',')
		}
	case objects:
		sorted := slices.SortedFunc(slices.Values(v.members), func(a, b member) int { return strings.Compare(a.name, b.name) })
		b.WriteByte('{')
		for _, m := range sorted {
			k, err := e.key(m.value)
			if err != nil {
				return "", err
			}
			b.WriteString(strconv.Quote(m.name))
			b.WriteByte(':')
			b.WriteString(k)
			b.WriteByte(',')
		}
	}
	if v.kind == arrays || v.kind == objects {
		b.WriteByte('}')
	}
	if err := e.budget.Work(1 + b.Len()/8); err != nil {
		return "", err
	}
	if err := e.budget.Hold(keyBytes + b.Len()); err != nil {
		return "", err
	}
	e.keys[v] = b.String()
	return e.keys[v], nil
}

// keyBytes is about what a key or a name takes in a map, beside its text.
const keyBytes = 64
