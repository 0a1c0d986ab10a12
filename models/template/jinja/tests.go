package jinja

import (
	"fmt"
)

// test tells whether v is name(args).
func (r *renderer) test(name string, v any, a args) (bool, error) {
	if err := r.charge(len(name)); err != nil {
		return false, err
	}
	arg := a.get(0, "", nil)
	switch name {
	case "defined":
		_, is := v.(undefined)
		return !is, nil
	case "undefined":
		_, is := v.(undefined)
		return is, nil
	case "none":
		return v == nil, nil
	case "boolean":
		_, is := v.(bool)
		return is, nil
	case "true":
		return v == true, nil
	case "false":
		return v == false, nil
	case "integer":
		_, is := v.(int64)
		return is, nil
	case "float":
		_, is := v.(float64)
		return is, nil
	case "number":
		_, _, _, is := number(v)
		return is, nil
	case "string":
		_, is := v.(string)
		return is, nil
	case "mapping":
		_, is := v.(*Dict)
		return is, nil
	case "sequence", "iterable":
		switch v.(type) {
		case string, *List, *Dict, undefined:
			return true, nil
		}
		return false, nil
	case "callable":
		switch v.(type) {
		case Func, builtin, *macro:
			return true, nil
		}
		return false, nil
	case "escaped":
		return false, nil
	case "lower", "upper":
		s, err := r.str(v)
		if err != nil {
			return false, err
		}
		return r.isCase(s, name == "upper")
	case "odd", "even", "divisibleby":
		return divides(name, v, arg)
	case "sameas":
		return r.same(v, arg)
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
		return r.contains(arg, v)
	}
	if op, ok := comparisonTests[name]; ok {
		return r.compare(op, v, arg)
	}
	return false, fmt.Errorf("no test named %.100q", name)
}

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

// same compares as Python's is does, for which equal scalars of one type are one.
func (r *renderer) same(a, b any) (bool, error) {
	switch a.(type) {
	case *List, *Dict, *namespace, *loop, *macro:
		return a == b, nil
	}
	if kindName(a) != kindName(b) {
		return false, nil
	}
	return r.equal(a, b, 0)
}
