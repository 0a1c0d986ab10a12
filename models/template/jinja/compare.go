package jinja

import (
	"fmt"
	"strings"
)

// compareValues applies a comparing operator.
func compareValues(r *resources, op string, a, b any) (bool, error) {
	switch op {
	case "==":
		return equal(r, a, b, 0)
	case "!=":
		ok, err := equal(r, a, b, 0)
		return !ok, err
	case "in":
		return contains(r, b, a)
	case "not in":
		ok, err := contains(r, b, a)
		return !ok, err
	}
	c, err := order(r, a, b, 0)
	switch op {
	case "<":
		return c < 0, err
	case "<=":
		return c <= 0, err
	case ">":
		return c > 0, err
	}
	return c >= 0, err
}

// equal compares as Python's == does.
func equal(r *resources, a, b any, depth int) (bool, error) {
	if err := r.step(); err != nil {
		return false, err
	}
	if depth > MaxNesting {
		return false, fmt.Errorf("%w: a value nested deeper than %d", ErrLimit, MaxNesting)
	}
	if _, _, _, ok := number(a); ok {
		return equalNumbers(a, b), nil
	}
	switch a := a.(type) {
	case nil:
		return b == nil, nil
	case undefined:
		_, ok := b.(undefined)
		return ok, nil
	case string:
		b, ok := b.(string)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		if err := r.charge(len(a)); err != nil {
			return false, err
		}
		return a == b, nil
	case *List:
		b, ok := b.(*List)
		if !ok || !a.alike(b) {
			return false, nil
		}
		for i := range a.Items {
			if same, err := equal(r, a.Items[i], b.Items[i], depth+1); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case *Dict:
		b, ok := b.(*Dict)
		if !ok || a.Len() != b.Len() {
			return false, nil
		}
		for i, k := range a.keys {
			if err := r.key(k); err != nil {
				return false, err
			}
			other, ok := b.Get(k)
			if !ok {
				return false, nil
			}
			if same, err := equal(r, a.values[i], other, depth+1); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case *namespace, *loop, *macro:
		return a == b, nil
	}
	return false, nil // functions, which Go cannot compare
}

// equalNumbers tells whether a number equals a value.
func equalNumbers(a, b any) bool {
	i, f, aInt, _ := number(a)
	j, g, bInt, ok := number(b)
	if aInt && bInt {
		return i == j
	}
	return ok && f == g
}

// alike tells whether lists are of one kind and length.
func (l *List) alike(other *List) bool {
	return l.Tuple == other.Tuple && len(l.Items) == len(other.Items)
}

// order returns negative, zero or positive as a sorts before, with or after b.
func order(r *resources, a, b any, depth int) (int, error) {
	if err := r.step(); err != nil {
		return 0, err
	}
	if depth > MaxNesting {
		return 0, fmt.Errorf("%w: a value nested deeper than %d", ErrLimit, MaxNesting)
	}
	if i, f, aInt, ok := number(a); ok {
		j, g, bInt, ok := number(b)
		switch {
		case !ok:
		case aInt && bInt:
			return compareOrdered(i, j), nil
		default:
			return compareOrdered(f, g), nil
		}
	}
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			if err := r.charge(min(len(x), len(y))); err != nil {
				return 0, err
			}
			return strings.Compare(x, y), nil
		}
	case *List:
		y, ok := b.(*List)
		if !ok {
			break
		}
		for i := range min(len(x.Items), len(y.Items)) {
			if c, err := order(r, x.Items[i], y.Items[i], depth+1); c != 0 || err != nil {
				return c, err
			}
		}
		return len(x.Items) - len(y.Items), nil
	}
	return 0, operandError("a comparison", a, b)
}

func compareOrdered[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// contains tells whether x is in container, as Python does.
func contains(r *resources, container, x any) (bool, error) {
	switch c := container.(type) {
	case string:
		s, ok := x.(string)
		if !ok {
			return false, operandError("in", x, c)
		}
		if err := r.charge(len(c)); err != nil {
			return false, err
		}
		return strings.Contains(c, s), nil
	case *Dict:
		if err := r.key(x); err != nil {
			return false, err
		}
		_, ok := c.Get(x)
		return ok, nil
	case *List:
		for _, item := range c.Items {
			if same, err := equal(r, item, x, 0); same || err != nil {
				return same, err
			}
		}
		return false, nil
	case undefined:
		return false, nil
	}
	return false, operandError("in", x, container)
}
