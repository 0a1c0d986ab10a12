package jinja

import (
	"errors"
	"fmt"
)

func (s textStmt) exec(f *frame) error { return f.r.print(s.text) }

func (s *outputStmt) exec(f *frame) error {
	v, err := f.value(s.value)
	if err != nil {
		return at(s.line, err)
	}
	text, err := toText(f.r.resources, v)
	if err != nil {
		return at(s.line, err)
	}
	return at(s.line, f.r.print(text))
}

func (s *ifStmt) exec(f *frame) error {
	v, err := f.value(s.cond)
	if err != nil {
		return at(s.line, err)
	}
	if truth(v) {
		return f.run(s.then)
	}
	return f.run(s.alt)
}

func (s groupStmt) exec(f *frame) error { return f.run(s.body) }

func (s loopStmt) exec(*frame) error {
	if s.brk {
		return errBreak
	}
	return errContinue
}

func (s *setStmt) exec(f *frame) error {
	v, err := f.value(s.value)
	if err != nil {
		return at(s.line, err)
	}
	if len(s.target) == 1 {
		return at(s.line, f.assign(s.target[0], v))
	}
	items, err := itemsOf(f.r.resources, v)
	if err != nil {
		return at(s.line, err)
	}
	if len(items) != len(s.target) {
		return at(s.line, fmt.Errorf("%d values for %d names", len(items), len(s.target)))
	}
	for i, target := range s.target {
		if err := f.assign(target, items[i]); err != nil {
			return at(s.line, err)
		}
	}
	return nil
}

// assign sets a name in the current scope or an attribute of a namespace.
func (f *frame) assign(target expr, v any) error {
	switch t := target.(type) {
	case *nameExpr:
		f.vars[t.name] = v
		return nil
	case *attrExpr:
		obj, err := f.value(t.value)
		if err != nil {
			return err
		}
		if ns, ok := obj.(*namespace); ok {
			return setEntry(f.r.resources, ns.Dict, t.name, v)
		}
		return fmt.Errorf("cannot set attribute %s: only a namespace's can be", t.name)
	}
	return errors.New("cannot assign to this expression")
}

func (s *setBlockStmt) exec(f *frame) error {
	text, err := f.r.capture(func() error { return f.child().run(s.body) })
	if err != nil {
		return at(s.line, err)
	}
	v, err := f.filtered(s.filters, text)
	if err != nil {
		return at(s.line, err)
	}
	return at(s.line, f.assign(s.target, v))
}

func (s *filterStmt) exec(f *frame) error {
	text, err := f.r.capture(func() error { return f.child().run(s.body) })
	if err != nil {
		return at(s.line, err)
	}
	v, err := f.filtered(s.filters, text)
	if err != nil {
		return at(s.line, err)
	}
	text, err = toText(f.r.resources, v)
	if err != nil {
		return at(s.line, err)
	}
	return at(s.line, f.r.print(text))
}

// filtered applies filters in turn.
func (f *frame) filtered(filters []filterExpr, v any) (any, error) {
	for i := range filters {
		a, err := f.args(&filters[i].args)
		if err != nil {
			return nil, err
		}
		if v, err = applyFilter(f.r.resources, filters[i].name, v, a); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (s *withStmt) exec(f *frame) error {
	inner := f.child()
	for i, name := range s.names {
		v, err := f.value(s.values[i])
		if err != nil {
			return at(s.line, err)
		}
		inner.vars[name] = v
	}
	return inner.run(s.body)
}

func (s *macroStmt) exec(f *frame) error {
	f.vars[s.name] = &macro{s, f}
	return nil
}

func (s *callStmt) exec(f *frame) error {
	fn, err := f.value(s.call.fn)
	if err != nil {
		return at(s.line, err)
	}
	a, err := f.args(&s.call.args)
	if err != nil {
		return at(s.line, err)
	}
	m, ok := fn.(*macro)
	if !ok {
		return at(s.line, fmt.Errorf("call needs a macro, not %s", kindName(fn)))
	}
	text, err := m.call(a, &macro{s.body, f})
	if err != nil {
		return at(s.line, err)
	}
	return at(s.line, f.r.print(text))
}
