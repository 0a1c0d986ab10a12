package jinja

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Values are nil (none), bool, int64, float64, string, *List, *Dict, Func and
// kinds of this package's own: undefined, *namespace, *loop and *macro. Other
// Go values are not accepted.

// List is a list, or a tuple, which prints differently.
type List struct {
	Items []any
	Tuple bool
}

// NewList returns a list of items.
func NewList(items ...any) *List { return &List{Items: items} }

// Dict is a mapping that keeps the order in which its keys came.
type Dict struct {
	keys, values []any
	index        map[any]int // of normal(key)
}

// NewDict returns an empty mapping.
func NewDict() *Dict { return &Dict{index: make(map[any]int)} }

// Func is a function that a template may call.
type Func func(args []any, named map[string]any) (any, error)

// undefined is the value of a name that has none. It prints as nothing and
// iterates as nothing; any other use is an error.
type undefined struct{ name string }

func (u undefined) err() error { return fmt.Errorf("%s is undefined", u.name) }

// namespace is the result of namespace(): attributes that inner scopes may set.
type namespace struct{ *Dict }

// normal returns the form under which a key is found: equal numbers are one key.
func normal(key any) (any, error) {
	switch k := key.(type) {
	case nil, string, int64:
		return k, nil
	case bool:
		return truthInt(k), nil
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int64(k), nil
		}
		return k, nil
	}
	return nil, fmt.Errorf("%s cannot be a key", kindName(key))
}

// Len returns the number of entries.
func (d *Dict) Len() int { return len(d.keys) }

// Get returns the value of key.
func (d *Dict) Get(key any) (any, bool) {
	k, err := normal(key)
	if err != nil {
		return nil, false
	}
	i, ok := d.index[k]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// Set gives key a value. A new key goes to the end. It reports an error for a
// key that is not a scalar.
func (d *Dict) Set(key, value any) error {
	k, err := normal(key)
	if err != nil {
		return err
	}
	if i, ok := d.index[k]; ok {
		d.values[i] = value
		return nil
	}
	d.index[k] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, value)
	return nil
}

// remove takes key out and reports what it held.
func (d *Dict) remove(key any) (any, bool) {
	k, err := normal(key)
	if err != nil {
		return nil, false
	}
	at, ok := d.index[k]
	if !ok {
		return nil, false
	}
	value := d.values[at]
	d.keys = append(d.keys[:at:at], d.keys[at+1:]...)
	d.values = append(d.values[:at:at], d.values[at+1:]...)
	delete(d.index, k)
	for k, i := range d.index {
		if i > at {
			d.index[k] = i - 1
		}
	}
	return value, true
}

// clone returns a shallow copy.
func (d *Dict) clone() *Dict {
	return &Dict{slices.Clone(d.keys), slices.Clone(d.values), maps.Clone(d.index)}
}

// pairs returns the entries as tuples.
func (d *Dict) pairs() []any {
	out := make([]any, len(d.keys))
	for i, k := range d.keys {
		out[i] = &List{Items: []any{k, d.values[i]}, Tuple: true}
	}
	return out
}

func truthInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// truth converts v as Python's bool() does.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return v.Len() > 0
	}
	return true
}

// kindName names a value's type in messages, as Python does.
func kindName(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case undefined:
		return "undefined"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *List:
		if v.Tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case *namespace:
		return "namespace"
	case *loop:
		return "loop"
	}
	return "function"
}

// number returns v as a float and, where it is one, as an integer; bools count.
func number(v any) (i int64, f float64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		i = truthInt(v)
		return i, float64(i), true, true
	case int64:
		return v, float64(v), true, true
	case float64:
		return 0, v, false, true
	}
	return 0, 0, false, false
}

// integer returns v where it is an integer.
func integer(v any) (int, error) {
	i, _, isInt, _ := number(v)
	if !isInt || int64(int(i)) != i {
		return 0, fmt.Errorf("%s is not an integer", kindName(v))
	}
	return int(i), nil
}
