package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// Validator holds finished JSON texts against a schema. It knows the keywords that grammars know, exactly
// and together with any others: format is an annotation. It is safe for concurrent use.
type Validator struct {
	root    *value
	legacy  bool
	targets map[*value]*value // what the $ref of a schema names
	marks   bool              // some schema asks what has been evaluated
}

// Mismatch says where a value does not match, by a JSON pointer, and why.
type Mismatch struct {
	at  *path
	why string
}

func (m *Mismatch) Error() string { return m.at.String() + ": " + m.why }

// NewValidator reads a schema, in what b allows. An error is an *Error.
func NewValidator(text []byte, b *budget.Budget) (*Validator, error) {
	v, err := newValidator(text, b)
	if err != nil {
		return nil, &Error{err}
	}
	return v, nil
}

func newValidator(text []byte, b *budget.Budget) (*Validator, error) {
	root, err := read(text)
	if err != nil {
		return nil, err
	}
	refs := newReferences(root)
	v := &Validator{root: root, legacy: refs.legacy(), targets: map[*value]*value{}}
	e := v.evaluation(b)
	seen := map[*value]bool{root: true}
	for open := []*value{root}; len(open) > 0; {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		found, err := v.inspect(e, refs, s)
		if err != nil {
			return nil, err
		}
		for _, within := range found {
			if !seen[within] {
				seen[within] = true
				open = append(open, within)
			}
		}
	}
	return v, nil
}

// inspect checks the keywords of a schema, and returns the schemas that it has or names.
func (v *Validator) inspect(e *evaluation, refs *references, s *value) (within []*value, err error) {
	if s.kind == booleans {
		return nil, nil
	}
	if s.kind != objects {
		return nil, errNoSchema
	}
	if _, err := e.demands(s); err != nil {
		return nil, err
	}
	for _, m := range s.members {
		if err := e.budget.Work(1 + len(m.name)/64); err != nil {
			return nil, err
		}
		k := keyword{s, m.name, m.value}
		switch m.name {
		case "$ref":
			if m.value.kind != strs {
				return nil, k.fault()
			}
			target, err := refs.find(s, m.value.text)
			if err != nil {
				return nil, err
			}
			v.targets[s] = target
			within = append(within, target)
		case "allOf", "anyOf", "oneOf":
			if _, err := k.subschemas(); err != nil {
				return nil, err
			}
		case "dependentRequired", "dependentSchemas", "dependencies":
			if m.value.kind != objects {
				return nil, k.fault()
			}
			for _, dependency := range m.value.members {
				if dependency.value.kind != arrays {
					within = append(within, dependency.value)
				} else if _, err := texts(m.name, dependency.value); err != nil {
					return nil, err
				}
			}
			continue
		case "unevaluatedProperties", "unevaluatedItems":
			v.marks = true
		}
		if _, means := keywords[m.name]; means || m.name == "then" || m.name == "else" {
			within = append(within, holds[m.name].within(m.value)...)
		}
	}
	return within, nil
}

// Validate holds a JSON text against the schema, as the task at hand of b. An error is a *Mismatch, an
// *Error of a text that cannot be read, or the budget's.
func (v *Validator) Validate(text []byte, b *budget.Budget) error {
	instance, err := read(text)
	if err != nil {
		return &Error{err}
	}
	_, err = v.evaluation(b).meets(v.root, instance, nil)
	return err
}

func (v *Validator) evaluation(b *budget.Budget) *evaluation {
	c := &solver{writing: writing{arena: regex.Within(b), quoting: regex.Raw}} // what asserting takes
	return &evaluation{Validator: v, solver: c, budget: b,
		known: map[*value][]demand{}, keys: map[*value]string{}, lists: map[*value]map[string]bool{}, names: map[*value]map[string]bool{}, under: map[application]bool{}}
}

// evaluation is of one text. What it finds out of the schema it forgets with it: what an evaluation costs
// depends on no other.
type evaluation struct {
	*Validator
	solver *solver
	budget *budget.Budget
	known  map[*value][]demand
	keys   map[*value]string
	lists  map[*value]map[string]bool // the keys of values of const and enum
	names  map[*value]map[string]bool // of objects' properties
	under  map[application]bool       // references that are being followed
	depth  int
}

// application is a schema applied to a value.
type application struct{ schema, to *value }

// mostApplied bounds the schemas that are applied within each other.
const mostApplied = 4096

// path is where a value stands.
type path struct {
	above *path
	name  string
	index int // of an item; -1: name is a property's
}

func (p *path) String() string {
	var steps []string
	for ; p != nil; p = p.above {
		step := p.name
		if p.index >= 0 {
			step = fmt.Sprint(p.index)
		}
		steps = append(steps, strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1"))
	}
	slices.Reverse(steps)
	return "/" + strings.Join(steps, "/")
}

func (p *path) to(name string) *path { return &path{p, name, -1} }
func (p *path) item(i int) *path     { return &path{p, "", i} }

func (p *path) mismatch(why string, args ...any) error {
	return &Mismatch{p, fmt.Sprintf(why, args...)}
}

// demand is a keyword that says by itself what it demands of a value.
type demand struct {
	keyword
	shape *shape // nil: nothing meets it
}

// demands returns what a schema's keywords assert.
func (e *evaluation) demands(s *value) ([]demand, error) {
	if d, ok := e.known[s]; ok {
		return d, nil
	}
	d := []demand{}
	for _, m := range s.members {
		assert := keywords[m.name].assert
		if assert == nil || m.name == "format" || m.name == "propertyNames" || e.legacy && m.name != "$ref" && s.get("$ref") != nil {
			continue
		}
		k := keyword{s, m.name, m.value}
		ways, err := assert(e.solver, k)
		if err == nil {
			err = e.solver.spend(1 + len(m.value.items) + len(m.value.members))
		}
		if err == nil {
			err = e.budget.Hold(demandBytes)
		}
		if err != nil {
			return nil, err
		}
		one := demand{keyword: k}
		if len(ways) > 0 {
			one.shape = ways[0]
		}
		d = append(d, one)
	}
	e.known[s] = d
	return d, nil
}

// demandBytes is about what a demand takes, with its shape.
const demandBytes = 768
