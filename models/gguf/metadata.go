package gguf

import (
	"maps"
	"math"
	"strings"
)

// SamplingPrefix begins the keys that say how a model's author wants answers to be sampled,
// https://github.com/ggml-org/llama.cpp/pull/17120.
const SamplingPrefix = "general.sampling."

// Metadata holds a file's key-value pairs. A value is a bool, a string, a
// Go integer or float of the width stored, a slice of one of these, or []any
// for an array of arrays. Accessors report false for a missing key and for a
// value of another kind.
type Metadata map[string]any

// Under returns the pairs whose keys begin with a prefix.
func (m Metadata) Under(prefix string) Metadata {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(key string, _ any) bool { return !strings.HasPrefix(key, prefix) })
	return m
}

// String returns a string value.
func (m Metadata) String(key string) (string, bool) {
	s, ok := m[key].(string)
	return s, ok
}

// Bool returns a boolean value.
func (m Metadata) Bool(key string) (value, ok bool) {
	value, ok = m[key].(bool)
	return value, ok
}

// Uint returns an integer value of any width that is not negative.
func (m Metadata) Uint(key string) (uint64, bool) {
	i, u, ok := integer(m[key])
	return u, ok && i >= 0
}

// Int returns an integer value of any width that fits an int.
func (m Metadata) Int(key string) (int, bool) {
	i, _, ok := integer(m[key])
	return int(i), ok && i != tooBig && int64(int(i)) == i
}

// Float returns a number: a float of either width or an integer.
func (m Metadata) Float(key string) (float64, bool) {
	switch v := m[key].(type) {
	case float32:
		return float64(v), true
	case float64:
		return v, true
	}
	i, u, ok := integer(m[key])
	if i < 0 {
		return float64(i), ok
	}
	return float64(u), ok
}

// Bools returns an array of booleans. The slice belongs to m.
func (m Metadata) Bools(key string) ([]bool, bool) {
	b, ok := m[key].([]bool)
	return b, ok
}

// Strings returns an array of strings. The slice belongs to m.
func (m Metadata) Strings(key string) ([]string, bool) {
	s, ok := m[key].([]string)
	return s, ok
}

// Floats returns an array of numbers, narrowed to float32.
func (m Metadata) Floats(key string) ([]float32, bool) {
	switch v := m[key].(type) {
	case []float32:
		return v, true
	case []float64:
		out := make([]float32, len(v))
		for i := range v {
			out[i] = float32(v[i])
		}
		return out, true
	}
	ints, ok := m.Ints(key)
	if !ok {
		return nil, false
	}
	out := make([]float32, len(ints))
	for i := range ints {
		out[i] = float32(ints[i])
	}
	return out, true
}

// Ints returns an array of integers of any width, each of which fits an int.
func (m Metadata) Ints(key string) ([]int, bool) {
	switch v := m[key].(type) {
	case []uint8:
		return widen(v)
	case []int8:
		return widen(v)
	case []uint16:
		return widen(v)
	case []int16:
		return widen(v)
	case []uint32:
		return widen(v)
	case []int32:
		return widen(v)
	case []uint64:
		return widen(v)
	case []int64:
		return widen(v)
	}
	return nil, false
}

// Len returns the number of elements of an array value, 0 for any other.
func (m Metadata) Len(key string) int {
	switch v := m[key].(type) {
	case []string:
		return len(v)
	case []bool:
		return len(v)
	case []float32:
		return len(v)
	case []float64:
		return len(v)
	case []any:
		return len(v)
	}
	ints, _ := m.Ints(key)
	return len(ints)
}

// tooBig stands for an unsigned value that no int64 holds.
const tooBig = math.MaxInt64

// integer gives v as both kinds of 64-bit integer: u is meaningful when i is
// not negative, i saturates at tooBig.
func integer(v any) (i int64, u uint64, ok bool) {
	switch v := v.(type) {
	case uint8:
		i = int64(v)
	case int8:
		i = int64(v)
	case uint16:
		i = int64(v)
	case int16:
		i = int64(v)
	case uint32:
		i = int64(v)
	case int32:
		i = int64(v)
	case int64:
		i = v
	case uint64:
		return int64(min(v, tooBig)), v, true
	default:
		return 0, 0, false
	}
	return i, uint64(i), true
}

func widen[T uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64](v []T) ([]int, bool) {
	out := make([]int, len(v))
	for i, x := range v {
		out[i] = int(x)
		if T(out[i]) != x || (out[i] < 0) != (x < 0) {
			return nil, false
		}
	}
	return out, true
}
