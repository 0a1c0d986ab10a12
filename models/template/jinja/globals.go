package jinja

import "fmt"

// globals returns the functions that every template has.
func globals(r *resources) map[string]any {
	return map[string]any{
		"range": builtin(func(a args) (any, error) { return rangeOf(r, a) }),
		"dict": builtin(func(a args) (any, error) {
			d, err := newDict(r)
			if err != nil {
				return nil, err
			}
			return d, fillDict(r, d, a)
		}),
		"namespace": builtin(func(a args) (any, error) {
			d, err := newDict(r)
			if err != nil {
				return nil, err
			}
			return &namespace{d}, fillDict(r, d, a)
		}),
	}
}

// rangeOf returns range(stop) or range(start, stop, step).
func rangeOf(r *resources, a args) (any, error) {
	bounds := [3]int{0, 0, 1}
	switch len(a.pos) {
	case 1, 2, 3:
	default:
		return nil, fmt.Errorf("range takes 1 to 3 arguments, not %d", len(a.pos))
	}
	for i, v := range a.pos {
		n, err := integer(v)
		if err != nil {
			return nil, err
		}
		// No list that could be held needs more, and sums cannot overflow.
		const most = 1 << 40
		bounds[i] = min(max(n, -most), most)
	}
	if len(a.pos) == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	lo, hi, step := bounds[0], bounds[1], bounds[2]
	if step == 0 {
		return nil, fmt.Errorf("range step cannot be zero")
	}
	n := rangeLen(lo, hi, step)
	if err := r.chargeTimes(n, itemBytes); err != nil {
		return nil, err
	}
	l := &List{Items: make([]any, n)}
	for i := range l.Items {
		l.Items[i] = int64(lo + i*step)
	}
	return l, nil
}

// rangeLen returns how many numbers range(lo, hi, step) has.
func rangeLen(lo, hi, step int) int {
	if step < 0 {
		lo, hi, step = hi, lo, -step
	}
	return max(0, (hi-lo+step-1)/step)
}
