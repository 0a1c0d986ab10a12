package jinja

import "fmt"

// args are the evaluated arguments of a call.
type args struct {
	pos   []any
	names []string // of named, in the order given
	named map[string]any
}

func (a *args) set(name string, v any) {
	if a.named == nil {
		a.named = make(map[string]any)
	}
	if _, dup := a.named[name]; !dup {
		a.names = append(a.names, name)
	}
	a.named[name] = v
}

func (f *frame) args(c *callArgs) (a args, err error) {
	if a.pos, err = f.values(c.args); err != nil {
		return a, err
	}
	for i, name := range c.names {
		v, err := f.value(c.values[i])
		if err != nil {
			return a, err
		}
		a.set(name, v)
	}
	if c.spread != nil {
		v, err := f.value(c.spread)
		if err != nil {
			return a, err
		}
		items, err := paidItems(f.r.resources, v)
		if err != nil {
			return a, err
		}
		a.pos = append(a.pos, items...)
	}
	if c.kwargs != nil {
		v, err := f.value(c.kwargs)
		if err != nil {
			return a, err
		}
		d, ok := v.(*Dict)
		if !ok {
			return a, fmt.Errorf("** needs a mapping, not %s", kindName(v))
		}
		if err := f.r.charge(entryBytes * d.Len()); err != nil {
			return a, err
		}
		for i, k := range d.keys {
			name, ok := k.(string)
			if !ok {
				return a, fmt.Errorf("** needs names, not %s", kindName(k))
			}
			a.set(name, d.values[i])
		}
	}
	return a, nil
}

// get returns the argument at position i or of the name given, def if neither.
func (a args) get(i int, name string, def any) any {
	if i < len(a.pos) {
		return a.pos[i]
	}
	if v, ok := a.named[name]; ok {
		return v
	}
	return def
}

func (e *callExpr) eval(f *frame) (any, error) {
	fn, err := f.value(e.fn)
	if err != nil {
		return nil, err
	}
	a, err := f.args(&e.args)
	if err != nil {
		return nil, at(e.line, err)
	}
	v, err := callValue(f.r.resources, fn, a)
	return v, at(e.line, err)
}

// callValue calls a function or a macro.
func callValue(r *resources, fn any, a args) (any, error) {
	switch fn := fn.(type) {
	case Func: // not of this package: it charges nothing itself
		for _, v := range a.pos {
			if s, ok := v.(string); ok {
				if err := r.chargeTimes(len(s), 32); err != nil { // a date may be 27 times its format
					return nil, err
				}
			}
		}
		return fn(a.pos, a.named)
	case builtin:
		return fn(a)
	case *macro:
		return fn.call(a, nil)
	case undefined:
		return nil, fn.err()
	}
	return nil, fmt.Errorf("%s cannot be called", kindName(fn))
}

// macro is a macro with the scope it was defined in.
type macro struct {
	def   *macroStmt
	scope *frame
}

// call runs the macro; caller, if not nil, holds the call's block.
func (m *macro) call(a args, caller *macro) (string, error) {
	r := m.scope.r
	inner := m.scope.child()
	if caller != nil {
		inner.vars["caller"] = caller
	}
	required := len(m.def.params) - len(m.def.defaults)
	for i, name := range m.def.params {
		v, given := a.named[name]
		switch {
		case i < len(a.pos):
			v = a.pos[i]
		case given:
		case i >= required:
			var err error
			if v, err = inner.value(m.def.defaults[i-required]); err != nil {
				return "", err
			}
		default:
			v = undefined{"parameter '" + name + "'"}
		}
		inner.vars[name] = v
	}
	rest := &List{Tuple: true}
	if len(a.pos) > len(m.def.params) {
		rest.Items = a.pos[len(m.def.params):]
	}
	inner.vars["varargs"] = rest
	if r.depth++; r.depth > r.lim.Depth {
		return "", fmt.Errorf("%w: macros nested deeper than %d", ErrLimit, r.lim.Depth)
	}
	text, err := r.capture(func() error { return inner.run(m.def.body) })
	r.depth--
	return text, err
}

// builtin is a function of this package, which sees the order of named
// arguments.
type builtin func(a args) (any, error)

type filterFunc = func(r *resources, v any, a args) (any, error)

// str returns the argument at position i or of the name given, which must be a
// string.
func (a args) str(i int, name string) (string, error) {
	v := a.get(i, name, nil)
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%s is not a string", kindName(v))
	}
	return s, nil
}
