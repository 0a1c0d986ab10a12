package jinja

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

var errOverflow = errors.New("integer too large")

// sign returns +v or -v.
func sign(op string, v any) (any, error) {
	i, f, isInt, ok := number(v)
	switch {
	case !ok:
		return nil, operandError(op, v, v)
	case op == "+" && isInt:
		return i, nil
	case op == "+":
		return f, nil
	case isInt && i == math.MinInt64:
		return nil, errOverflow
	case isInt:
		return -i, nil
	}
	return -f, nil
}

func operandError(op string, a, b any) error {
	for _, v := range []any{a, b} {
		if u, ok := v.(undefined); ok {
			return u.err()
		}
	}
	return fmt.Errorf("%s does not work on %s and %s", op, kindName(a), kindName(b))
}

// binaryOp applies an arithmetic operator or ~.
func binaryOp(r *resources, op string, a, b any) (any, error) {
	if op == "~" {
		x, err := toText(r, a)
		if err != nil {
			return nil, err
		}
		y, err := toText(r, b)
		if err != nil {
			return nil, err
		}
		if err := r.charge(len(x) + len(y)); err != nil {
			return nil, err
		}
		return x + y, nil
	}
	if s, ok := a.(string); ok && op == "%" {
		return percentFormat(r, s, b)
	}
	if op == "+" {
		if v, ok, err := concatenate(r, a, b); ok {
			return v, err
		}
	}
	if op == "*" {
		if v, ok, err := repeat(r, a, b); ok {
			return v, err
		}
	}
	i, f, aInt, ok := number(a)
	j, g, bInt, ok2 := number(b)
	if !ok || !ok2 {
		return nil, operandError(op, a, b)
	}
	if aInt && bInt && op != "/" {
		if op != "**" || j >= 0 {
			return intOp(op, i, j)
		}
	}
	return floatOp(op, f, g)
}

// concatenate returns a + b of strings or of lists; ok is false for other operands.
func concatenate(r *resources, a, b any) (v any, ok bool, err error) {
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			// Charged before it is made: a string that doubles must stop early.
			if err := r.charge(len(a) + len(b)); err != nil {
				return nil, true, err
			}
			return a + b, true, nil
		}
	case *List:
		if b, ok := b.(*List); ok && a.Tuple == b.Tuple {
			if err := r.charge(itemBytes * (len(a.Items) + len(b.Items))); err != nil {
				return nil, true, err
			}
			return &List{Items: slices.Concat(a.Items, b.Items), Tuple: a.Tuple}, true, nil
		}
	}
	return nil, false, nil
}

// repeat returns a * b of a string or list and a count, in either order.
func repeat(r *resources, a, b any) (v any, ok bool, err error) {
	if _, _, _, num := number(a); num {
		a, b = b, a
	}
	count, err := integer(b)
	if err != nil {
		return nil, false, nil
	}
	count = max(count, 0)
	size := 0
	switch a := a.(type) {
	case string:
		size = len(a)
	case *List:
		size = itemBytes * len(a.Items)
	default:
		return nil, false, nil
	}
	if err := r.chargeTimes(count, size); err != nil {
		return nil, true, err
	}
	switch a := a.(type) {
	case string:
		return strings.Repeat(a, count), true, nil
	case *List:
		return &List{Items: slices.Repeat(a.Items, count), Tuple: a.Tuple}, true, nil
	}
	return nil, false, nil
}

// intOp returns Python's integer arithmetic within 64 bits.
func intOp(op string, i, j int64) (any, error) {
	switch op {
	case "+":
		if s := i + j; (s > i) == (j > 0) {
			return s, nil
		}
		return nil, errOverflow
	case "-":
		if s := i - j; (s < i) == (j > 0) {
			return s, nil
		}
		return nil, errOverflow
	case "*":
		return mul(i, j)
	case "**":
		return power(i, j)
	}
	if j == 0 {
		return nil, errors.New("division by zero")
	}
	if j == -1 { // the one quotient that may overflow
		if op == "%" {
			return int64(0), nil
		}
		return sign("-", i)
	}
	q, m := i/j, i%j
	if m != 0 && (m < 0) != (j < 0) { // Python rounds down
		q, m = q-1, m+j
	}
	if op == "//" {
		return q, nil
	}
	return m, nil
}

func mul(i, j int64) (any, error) {
	if i == 0 || j == 0 {
		return int64(0), nil
	}
	p := i * j
	if p/j != i || i == -1 && j == math.MinInt64 || j == -1 && i == math.MinInt64 {
		return nil, errOverflow
	}
	return p, nil
}

// power returns i**j for j >= 0.
func power(i, j int64) (any, error) {
	if i == 0 || i == 1 || i == -1 {
		if j == 0 || i == 1 || i == -1 && j%2 == 0 {
			return int64(1), nil
		}
		return i, nil
	}
	result := int64(1)
	for range min(j, 64) { // |i| >= 2: more factors overflow
		p, err := mul(result, i)
		if err != nil {
			return nil, err
		}
		result = p.(int64)
	}
	return result, nil
}

func floatOp(op string, f, g float64) (any, error) {
	switch op {
	case "+":
		return f + g, nil
	case "-":
		return f - g, nil
	case "*":
		return f * g, nil
	case "**":
		return math.Pow(f, g), nil
	}
	if g == 0 {
		return nil, errors.New("division by zero")
	}
	switch op {
	case "/":
		return f / g, nil
	case "//":
		return math.Floor(f / g), nil
	}
	m := math.Mod(f, g)
	if m != 0 && (m < 0) != (g < 0) {
		m += g
	}
	return m, nil
}
