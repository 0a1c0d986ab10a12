package jinja

import (
	"fmt"
)

// applyTest tells whether v is name(args).
func applyTest(r *resources, name string, v any, a args) (bool, error) {
	if err := r.charge(len(name)); err != nil {
		return false, err
	}
	if is, ok := kindTests[name]; ok {
		return is(v), nil
	}
	arg := a.get(0, "", nil)
	switch name {
	case "lower", "upper":
		s, err := toText(r, v)
		if err != nil {
			return false, err
		}
		return isCase(r, s, name == "upper")
	case "odd", "even", "divisibleby":
		return divides(name, v, arg)
	case "sameas":
		return identical(r, v, arg)
	case "filter":
		s, _ := arg.(string)
		if n, ok := v.(string); ok {
			s = n
		}
		if err := r.key(s); err != nil {
			return false, err
		}
		_, is := filters[s]
		return is, nil
	case "in":
		return contains(r, arg, v)
	}
	if op, ok := comparisonTests[name]; ok {
		return compareValues(r, op, v, arg)
	}
	return false, fmt.Errorf("no test named %.100q", name)
}

// kindTests ask for the kind of a value.
var kindTests = map[string]func(v any) bool{
	"defined":   func(v any) bool { return !of[undefined](v) },
	"undefined": of[undefined],
	"none":      func(v any) bool { return v == nil },
	"boolean":   of[bool],
	"true":      func(v any) bool { return v == true },
	"false":     func(v any) bool { return v == false },
	"integer":   of[int64],
	"float":     of[float64],
	"number":    func(v any) bool { _, _, _, is := number(v); return is },
	"string":    of[string],
	"mapping":   of[*Dict],
	"sequence":  iterable,
	"iterable":  iterable,
	"callable":  func(v any) bool { return of[Func](v) || of[builtin](v) || of[*macro](v) },
	"escaped":   func(any) bool { return false },
}

// of tells whether a value is of a type.
func of[T any](v any) bool {
	_, is := v.(T)
	return is
}

// iterable tells whether a loop may go through a value.
func iterable(v any) bool { return of[string](v) || of[*List](v) || of[*Dict](v) || of[undefined](v) }

// comparisonTests are the operators that have names as tests.
var comparisonTests = map[string]string{
	"eq": "==", "equalto": "==", "==": "==", "ne": "!=", "!=": "!=", "lt": "<", "lessthan": "<", "<": "<",
	"le": "<=", "<=": "<=", "gt": ">", "greaterthan": ">", ">": ">", "ge": ">=", ">=": ">=",
}

// divides reports v mod n == 0, or for odd v mod 2 == 1.
func divides(name string, v, by any) (bool, error) {
	n := 2
	var err error
	if name == "divisibleby" {
		if n, err = integer(by); err != nil {
			return false, err
		}
	}
	i, err := integer(v)
	if err != nil {
		return false, err
	}
	if n == 0 {
		return false, fmt.Errorf("division by zero")
	}
	return (i%n == 0) != (name == "odd"), nil
}

// identical compares as Python's is does, for which equal scalars of one type are one.
func identical(r *resources, a, b any) (bool, error) {
	switch a.(type) {
	case *List, *Dict, *namespace, *loop, *macro:
		return a == b, nil
	}
	if kindName(a) != kindName(b) {
		return false, nil
	}
	return equal(r, a, b, 0)
}
