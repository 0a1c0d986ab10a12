package jinja

import (
	"fmt"
	"unicode/utf8"
)

func (e constExpr) eval(*frame) (any, error) { return e.value, nil }

func (e *nameExpr) eval(f *frame) (any, error) { return f.lookup(e.name), nil }

func (e *listExpr) eval(f *frame) (any, error) {
	items, err := f.values(e.items)
	return &List{Items: items, Tuple: e.tuple}, err
}

func (e *dictExpr) eval(f *frame) (any, error) {
	d, err := newDict(f.r.resources)
	if err != nil {
		return nil, err
	}
	for i := range e.keys {
		k, err := f.value(e.keys[i])
		if err != nil {
			return nil, err
		}
		v, err := f.value(e.values[i])
		if err != nil {
			return nil, err
		}
		if err := setEntry(f.r.resources, d, k, v); err != nil {
			return nil, at(e.line, err)
		}
	}
	return d, nil
}

func (e *condExpr) eval(f *frame) (any, error) {
	c, err := f.value(e.cond)
	if err != nil {
		return nil, err
	}
	switch {
	case truth(c):
		return f.value(e.then)
	case e.alt == nil:
		return undefined{"the inline if without else"}, nil
	}
	return f.value(e.alt)
}

func (e *unaryExpr) eval(f *frame) (any, error) {
	v, err := f.value(e.value)
	if err != nil {
		return nil, err
	}
	if e.op == "not" {
		return !truth(v), nil
	}
	v, err = sign(e.op, v)
	return v, at(e.line, err)
}

func (e *binaryExpr) eval(f *frame) (any, error) {
	left, err := f.value(e.left)
	if err != nil {
		return nil, err
	}
	switch e.op {
	case "and":
		if !truth(left) {
			return left, nil
		}
		return f.value(e.right)
	case "or":
		if truth(left) {
			return left, nil
		}
		return f.value(e.right)
	}
	right, err := f.value(e.right)
	if err != nil {
		return nil, err
	}
	v, err := binaryOp(f.r.resources, e.op, left, right)
	return v, at(e.line, err)
}

func (e *compareExpr) eval(f *frame) (any, error) {
	left, err := f.value(e.first)
	if err != nil {
		return nil, err
	}
	for i, op := range e.ops {
		right, err := f.value(e.rest[i])
		if err != nil {
			return nil, err
		}
		ok, err := compareValues(f.r.resources, op, left, right)
		if err != nil {
			return nil, at(e.line, err)
		}
		if !ok {
			return false, nil
		}
		left = right
	}
	return true, nil
}

func (e *attrExpr) eval(f *frame) (any, error) {
	v, err := f.value(e.value)
	if err != nil {
		return nil, err
	}
	v, err = attribute(f.r.resources, v, e.name)
	return v, at(e.line, err)
}

// attribute returns v.name: a method or built-in attribute, else the entry of that key.
func attribute(r *resources, v any, name string) (any, error) {
	if u, ok := v.(undefined); ok {
		return nil, u.err()
	}
	if err := r.key(name); err != nil {
		return nil, err
	}
	if m, ok := methodOf(r, v, name); ok {
		return m, nil
	}
	var entries *Dict
	switch v := v.(type) {
	case *Dict:
		entries = v
	case *namespace:
		entries = v.Dict
	}
	if entries != nil {
		if x, ok := entries.Get(name); ok {
			return x, nil
		}
	}
	return undefined{fmt.Sprintf("attribute '%.100s' of %s", name, kindName(v))}, nil
}

func (e *itemExpr) eval(f *frame) (any, error) {
	v, err := f.value(e.value)
	if err != nil {
		return nil, err
	}
	k, err := f.value(e.key)
	if err != nil {
		return nil, err
	}
	v, err = element(f.r.resources, v, k)
	return v, at(e.line, err)
}

// element returns v[key]: an element, else the attribute of that name.
func element(r *resources, v, key any) (any, error) {
	missing := undefined{fmt.Sprintf("an element of %s", kindName(v))}
	switch v := v.(type) {
	case undefined:
		return nil, v.err()
	case *Dict:
		if err := r.key(key); err != nil {
			return nil, err
		}
		if x, ok := v.Get(key); ok {
			return x, nil
		}
	case *List:
		if i, err := integer(key); err == nil {
			if i < 0 {
				i += len(v.Items)
			}
			if i < 0 || i >= len(v.Items) {
				return missing, nil
			}
			return v.Items[i], nil
		}
	case string:
		if i, err := integer(key); err == nil {
			return character(r, v, i, missing)
		}
	}
	if name, ok := key.(string); ok {
		return attribute(r, v, name)
	}
	return missing, nil
}

// character returns the i-th character of s, from the end when negative.
func character(r *resources, s string, i int, missing any) (any, error) {
	if err := r.charge(len(s)); err != nil {
		return nil, err
	}
	if i < 0 {
		i += utf8.RuneCountInString(s)
	}
	n := 0
	for _, c := range s {
		if n == i {
			return string(c), nil
		}
		n++
	}
	return missing, nil
}

func (e *sliceExpr) eval(f *frame) (any, error) {
	v, err := f.value(e.value)
	if err != nil {
		return nil, err
	}
	var bounds [3]*int
	for i, part := range []expr{e.lo, e.hi, e.step} {
		if part == nil {
			continue
		}
		x, err := f.value(part)
		if err != nil {
			return nil, err
		}
		if x == nil {
			continue
		}
		n, err := integer(x)
		if err != nil {
			return nil, at(e.line, err)
		}
		bounds[i] = &n
	}
	v, err = sliceOf(f.r.resources, v, bounds[0], bounds[1], bounds[2])
	return v, at(e.line, err)
}

// sliceOf returns v[lo:hi:step] with Python's rules; nil bounds are left out.
func sliceOf(r *resources, v any, lo, hi, step *int) (any, error) {
	switch v := v.(type) {
	case string:
		if err := r.chargeTimes(len(v), 8); err != nil {
			return nil, err
		}
		out, err := sliced([]rune(v), lo, hi, step)
		return string(out), err
	case *List:
		if err := r.charge(itemBytes * len(v.Items)); err != nil {
			return nil, err
		}
		out, err := sliced(v.Items, lo, hi, step)
		return &List{Items: out, Tuple: v.Tuple}, err
	case undefined:
		return nil, v.err()
	}
	return nil, fmt.Errorf("%s cannot be sliced", kindName(v))
}

// sliced returns a copy of the items that a slice takes.
func sliced[T any](items []T, lo, hi, step *int) ([]T, error) {
	by := 1
	if step != nil {
		by = *step
	}
	if by == 0 {
		return nil, fmt.Errorf("slice step cannot be zero")
	}
	n := len(items)
	// In a slice that runs backwards the bounds lie one to the left.
	first, last := 0, n
	if by < 0 {
		first, last = -1, n-1
	}
	bound := func(p *int, def int) int {
		if p == nil {
			return def
		}
		i := *p
		if i < 0 {
			i += n
		}
		return min(max(i, first), last)
	}
	i, end := bound(lo, 0), bound(hi, n)
	if by < 0 {
		i, end = bound(lo, n-1), bound(hi, -1)
	}
	by = min(max(by, -n-1), n+1) // sums do not overflow
	out := make([]T, rangeLen(i, end, by))
	for k := range out {
		out[k] = items[i+k*by]
	}
	return out, nil
}

func (e *filterExpr) eval(f *frame) (any, error) {
	v, err := f.value(e.value)
	if err != nil {
		return nil, err
	}
	a, err := f.args(&e.args)
	if err != nil {
		return nil, at(e.line, err)
	}
	v, err = applyFilter(f.r.resources, e.name, v, a)
	return v, at(e.line, err)
}

func (e *testExpr) eval(f *frame) (any, error) {
	v, err := f.value(e.value)
	if err != nil {
		return nil, err
	}
	a, err := f.args(&e.args)
	if err != nil {
		return nil, at(e.line, err)
	}
	ok, err := applyTest(f.r.resources, e.name, v, a)
	return ok != e.negate, at(e.line, err)
}
