package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strings"
)

// The bounds of a schema.
const (
	mostBytes  = 8 << 20
	mostDepth  = 200
	mostValues = 1 << 19
)

// value is a JSON value whose members keep their order.
type value struct {
	kind    types
	members []member // of an object
	items   []*value // of an array
	text    string   // of a string; a number as it is written
	number  *big.Rat
	truth   bool
}

type member struct {
	name  string
	value *value
}

// get returns a member of an object, nil if there is none.
func (v *value) get(name string) *value {
	if v == nil || v.kind != objects {
		return nil
	}
	for i := range v.members {
		if v.members[i].name == name {
			return v.members[i].value
		}
	}
	return nil
}

// read reads a JSON text.
func read(text []byte) (*value, error) {
	if len(text) > mostBytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), mostBytes)
	}
	r := reader{d: json.NewDecoder(bytes.NewReader(text))}
	r.d.UseNumber()
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := r.d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more than one value")
	}
	return v, nil
}

type reader struct {
	d     *json.Decoder
	count int
}

func (r *reader) value(depth int) (*value, error) {
	if r.count++; r.count > mostValues {
		return nil, fmt.Errorf("it has more than %d values", mostValues)
	}
	if depth > mostDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", mostDepth)
	}
	token, err := r.d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case nil:
		return &value{kind: nulls}, nil
	case bool:
		return &value{kind: booleans, truth: t}, nil
	case string:
		return &value{kind: strs, text: t}, nil
	case json.Number:
		n, ok := rational(t.String())
		if !ok {
			return nil, fmt.Errorf("the number %.40s is out of range", t.String())
		}
		return &value{kind: numbers, text: t.String(), number: n}, nil
	case json.Delim:
		if t == '[' {
			v := &value{kind: arrays}
			for r.d.More() {
				item, err := r.value(depth + 1)
				if err != nil {
					return nil, err
				}
				v.items = append(v.items, item)
			}
			_, err := r.d.Token()
			return v, err
		}
		return r.object(depth)
	}
	return nil, fmt.Errorf("unexpected %v", token)
}

func (r *reader) object(depth int) (*value, error) {
	v := &value{kind: objects}
	at := map[string]int{}
	for r.d.More() {
		name, err := r.d.Token()
		if err != nil {
			return nil, err
		}
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if i, again := at[name.(string)]; again {
			v.members[i].value = item
			continue
		}
		at[name.(string)] = len(v.members)
		v.members = append(v.members, member{name.(string), item})
	}
	_, err := r.d.Token()
	return v, err
}

// rational reads a number whose exponent is small.
func rational(text string) (*big.Rat, bool) {
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > 3 || len(text) > 400 {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// equal reports whether two values are the same to JSON Schema.
func equal(a, b *value) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case booleans:
		return a.truth == b.truth
	case numbers:
		return a.number.Cmp(b.number) == 0
	case strs:
		return a.text == b.text
	case arrays:
		if len(a.items) != len(b.items) {
			return false
		}
		for i := range a.items {
			if !equal(a.items[i], b.items[i]) {
				return false
			}
		}
	case objects:
		if len(a.members) != len(b.members) {
			return false
		}
		for i := range a.members {
			if o := b.get(a.members[i].name); o == nil || !equal(a.members[i].value, o) {
				return false
			}
		}
	}
	return true
}

// natural returns the number that v holds, if it is one from 0 up.
func (v *value) natural() (int, bool) {
	if v.kind != numbers || !v.number.IsInt() || v.number.Sign() < 0 {
		return 0, false
	}
	if n := v.number.Num(); n.IsInt64() && n.Int64() <= 1<<30 {
		return int(n.Int64()), true
	}
	return 1 << 30, true
}

// types is a set of types.
type types uint8

const (
	nulls types = 1 << iota
	booleans
	numbers
	strs
	arrays
	objects
	everyType = nulls | booleans | numbers | strs | arrays | objects
)

var typeNames = map[string]types{"null": nulls, "boolean": booleans, "number": numbers, "integer": numbers, "string": strs, "array": arrays, "object": objects}

var trueSchema = &value{kind: booleans, truth: true}

func inList(list []*value, v *value) bool {
	for _, w := range list {
		if equal(v, w) {
			return true
		}
	}
	return false
}
