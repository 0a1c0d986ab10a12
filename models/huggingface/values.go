package huggingface

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// values holds the members of a JSON object in a file, or within one. Members that are null count as missing, as for
// transformers.
type values struct {
	folder *folder
	file   string // and the keys that lead there, for errors
	m      map[string]any
}

// notJSON are texts, and what Python writes for numbers that JSON has not.
var notJSON = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?Infinity|NaN`)

func (v *values) parse(text []byte) {
	text = notJSON.ReplaceAllFunc(text, func(part []byte) []byte {
		if part[0] == '"' {
			return part
		}
		return []byte("null")
	})
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v.m); err != nil {
		v.folder.fail("%s: %w", v.file, err)
	}
}

func (v *values) fail(key string, format string, args ...any) {
	v.folder.fail("%s: %s %w", v.file, key, fmt.Errorf(format, args...))
}

func (v *values) has(key string) bool { return v.m[key] != nil }

// within returns the object at key, empty if there is none.
func (v *values) within(key string) values {
	in := values{folder: v.folder, file: v.file + ": " + key}
	if m, ok := v.m[key].(map[string]any); ok {
		in.m = m
	} else if v.has(key) {
		v.fail(key, "is %s, want an object", brief(v.m[key]))
	}
	return in
}

// required makes count fail on a missing key.
const required = -1

// count reads a whole number in [lo, hi], or otherwise when the key is missing.
func (v *values) count(key string, lo, hi, otherwise int) int {
	if !v.has(key) {
		if otherwise == required {
			v.fail(key, "is missing")
		}
		return otherwise
	}
	n, ok := whole(v.m[key])
	if !ok || n < lo || n > hi {
		v.fail(key, "is %s, want a whole number from %d to %d", brief(v.m[key]), lo, hi)
		return lo
	}
	return n
}

// whole returns the whole number that a value is.
func whole(x any) (n int, ok bool) {
	number, ok := x.(json.Number)
	if !ok {
		return 0, false
	}
	if i, err := number.Int64(); err == nil && int64(int(i)) == i {
		return int(i), true
	}
	f, err := number.Float64()
	return int(f), err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<31
}

// number reads a finite number, or otherwise when the key is missing.
func (v *values) number(key string, otherwise float64) float64 {
	if !v.has(key) {
		return otherwise
	}
	n, ok := v.m[key].(json.Number)
	x, err := n.Float64()
	if !ok || err != nil || math.Abs(x) > math.MaxFloat32 {
		v.fail(key, "is %s, want a number", brief(v.m[key]))
		return otherwise
	}
	return x
}

// text reads a text, or otherwise when the key is missing.
func (v *values) text(key, otherwise string) string {
	if !v.has(key) {
		return otherwise
	}
	s, ok := v.m[key].(string)
	if !ok {
		v.fail(key, "is %s, want a text", brief(v.m[key]))
		return otherwise
	}
	return s
}

// flag reads a truth value, or otherwise when the key is missing.
func (v *values) flag(key string, otherwise bool) bool {
	if !v.has(key) {
		return otherwise
	}
	x, ok := v.m[key].(bool)
	if !ok {
		v.fail(key, "is %s, want true or false", brief(v.m[key]))
		return otherwise
	}
	return x
}

// only fails on a text that is none of those, and not missing.
func (v *values) only(key string, known ...string) {
	if s := v.text(key, known[0]); !slices.Contains(known, s) {
		v.fail(key, "is %.40q: %w: only %s is", s, ErrUnsupported, strings.Join(known, " or "))
	}
}

// onlyNumber fails on a number that is another one, and not missing.
func (v *values) onlyNumber(key string, want float64) {
	if x := v.number(key, want); x != want {
		v.fail(key, "is %v: %w: only %v is", x, ErrUnsupported, want)
	}
}

// onlyFlags fails on truth values that are another one, and not missing.
func (v *values) onlyFlags(want bool, keys ...string) {
	for _, key := range keys {
		if v.flag(key, want) != want {
			v.fail(key, "is %t: %w", !want, ErrUnsupported)
		}
	}
}

// list reads an array, nil when the key is missing.
func (v *values) list(key string) []any {
	x, ok := v.m[key].([]any)
	if v.has(key) && !ok {
		v.fail(key, "is %s, want an array", brief(v.m[key]))
	}
	return x
}

// numbers reads an array of n finite numbers.
func (v *values) numbers(key string, n int) []float32 {
	list := v.list(key)
	if len(list) != n {
		v.fail(key, "has %d numbers, want %d", len(list), n)
		return nil
	}
	out := make([]float32, n)
	for i, x := range list {
		number, ok := x.(json.Number)
		f, err := number.Float64()
		if !ok || err != nil || math.Abs(f) > math.MaxFloat32 {
			v.fail(key, "has %s at %d, want a number", brief(x), i)
			return nil
		}
		out[i] = float32(f)
	}
	return out
}

// texts reads an array of texts.
func (v *values) texts(key string) (out []string) {
	for i, x := range v.list(key) {
		s, ok := x.(string)
		if !ok {
			v.fail(key, "has %s at %d, want a text", brief(x), i)
			return nil
		}
		out = append(out, s)
	}
	return out
}

// brief bounds what an error repeats of a value.
func brief(x any) string { return fmt.Sprintf("%.80q", fmt.Sprint(x)) }
