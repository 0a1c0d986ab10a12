package jinja

import "fmt"

// loop is the variable of that name within a for statement.
type loop struct {
	items []any
	i     int
}

func (s *forStmt) exec(f *frame) error {
	v, err := f.value(s.iter)
	if err != nil {
		return at(s.line, err)
	}
	return at(s.line, s.each(f, v))
}

// each runs the loop over the elements of v.
func (s *forStmt) each(f *frame, v any) error {
	items, err := itemsOf(f.r.resources, v)
	if err != nil {
		return err
	}
	if items, err = s.wanted(f, items); err != nil {
		return err
	}
	if len(items) == 0 {
		return f.run(s.alt)
	}
	l := &loop{items: items}
	for i, item := range items {
		l.i = i
		if err := f.r.step(); err != nil {
			return err
		}
		inner := f.child()
		inner.vars["loop"] = l
		if err := s.bind(inner, item); err != nil {
			return err
		}
		switch err := inner.run(s.body); err {
		case nil, errContinue:
		case errBreak:
			return nil
		default:
			return err
		}
	}
	return nil
}

// wanted returns a copy of the items that the loop's filter lets through. The
// loop must not see changes that its body makes to the list.
func (s *forStmt) wanted(f *frame, items []any) ([]any, error) {
	if err := f.r.charge(itemBytes * len(items)); err != nil {
		return nil, err
	}
	out := make([]any, 0, len(items))
	for _, item := range items {
		if s.filter != nil {
			inner := f.child()
			if err := s.bind(inner, item); err != nil {
				return nil, err
			}
			v, err := inner.value(s.filter)
			if err != nil {
				return nil, err
			}
			if !truth(v) {
				continue
			}
		}
		out = append(out, item)
	}
	return out, nil
}

// bind gives the loop's names their values.
func (s *forStmt) bind(f *frame, item any) error {
	if len(s.target) == 1 {
		f.vars[s.target[0]] = item
		return nil
	}
	parts, err := itemsOf(f.r.resources, item)
	if err != nil {
		return err
	}
	if len(parts) != len(s.target) {
		return fmt.Errorf("%d values for %d names", len(parts), len(s.target))
	}
	for i, name := range s.target {
		f.vars[name] = parts[i]
	}
	return nil
}

// attr returns an attribute of the loop variable.
func (l *loop) attr(name string) (any, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.i + 1), true
	case "index0":
		return int64(l.i), true
	case "revindex":
		return int64(n - l.i), true
	case "revindex0":
		return int64(n - l.i - 1), true
	case "first":
		return l.i == 0, true
	case "last":
		return l.i == n-1, true
	case "length":
		return int64(n), true
	case "previtem":
		if l.i == 0 {
			return undefined{"there is no previous item: it"}, true
		}
		return l.items[l.i-1], true
	case "nextitem":
		if l.i == n-1 {
			return undefined{"there is no next item: it"}, true
		}
		return l.items[l.i+1], true
	case "cycle":
		return builtin(l.cycle), true
	}
	return nil, false
}

func (l *loop) cycle(a args) (any, error) {
	if len(a.pos) == 0 {
		return nil, fmt.Errorf("loop.cycle needs values")
	}
	return a.pos[l.i%len(a.pos)], nil
}
