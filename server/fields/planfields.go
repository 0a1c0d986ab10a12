package fields

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// planFields is a plan as an object in JSON, a scaling.Source. It checks types and lists; the plan
// checks what the values may be.
type planFields struct {
	o        *jsonread.Fields
	sections map[string]*jsonread.Fields // objects in o; close puts back what is unread
}

// at finds the object that holds the field of a path, and the field's name; nil: there
// is none.
func (p *planFields) at(key string) (o *jsonread.Fields, name string) {
	section, name, nested := strings.Cut(key, ".")
	if !nested {
		return p.o, key
	}
	if p.sections[section] == nil {
		o, ok := p.o.Object(section)
		if !ok {
			return nil, ""
		}
		if p.sections == nil {
			p.sections = map[string]*jsonread.Fields{}
		}
		p.sections[section] = o
	}
	return p.sections[section], name
}

// read calls f with the object that holds a field, if there is one, and keeps the
// first fault of all. It tells whether the field could be read.
func (p *planFields) read(key string, f func(o *jsonread.Fields, name string)) bool {
	o, name := p.at(key)
	if o == nil || !o.Has(name) {
		if o != nil {
			o.Ignore(name) // null
		}
		return false
	}
	f(o, name)
	if p.o.Err == nil {
		p.o.Err = o.Err
	}
	return o.Err == nil && p.o.Err == nil
}

// refuse refuses fields that no request may have.
func (p *planFields) refuse(keys ...string) {
	for _, key := range keys {
		p.read(key, func(o *jsonread.Fields, name string) { o.Refuse(name) })
	}
}

// close puts unread fields into the plan's object.
func (p *planFields) close() {
	for _, section := range slices.Sorted(maps.Keys(p.sections)) { // else equal requests get different errors
		p.o.Adopt(p.sections[section])
	}
}

// Read reads a setting. An object in place of a switch has settings of its own.
func (p *planFields) Read(s *scaling.Setting, dst any) bool {
	switch dst.(type) {
	case *bool, *scaling.Negated:
		if jsonread.Kind(p.o.Raw(s.Key)) == "an object" {
			return false
		}
	}
	return p.read(s.Key, func(o *jsonread.Fields, name string) { parseSetting(o, name, s, dst) })
}

// The bounds of a plan's lists.
const (
	maxNumbers = 16
	maxTexts   = 64
)

// parseSetting sets dst to the field of a name, which is there.
func parseSetting(o *jsonread.Fields, name string, s *scaling.Setting, dst any) {
	switch d := dst.(type) {
	case *string:
		o.String(name, d)
	case *int:
		if s.Auto && string(o.Raw(name)) == `"auto"` {
			*d = scaling.AutoN
			o.Ignore(name)
			return
		}
		o.Int(name, d, 1, scaling.MaxCount)
	case *time.Duration:
		if ms := 0; o.Int(name, &ms, 1, scaling.MaxCount) {
			*d = time.Duration(ms) * time.Millisecond
		}
	case *float64:
		o.Float64(name, d, s.Lo, s.Hi)
	case **float32:
		if t := float32(0); o.Float32(name, &t, 0, 2) {
			*d = &t
		}
	case *bool:
		o.Bool(name, d)
	case *scaling.Negated:
		on := !bool(*d)
		o.Bool(name, &on)
		*d = scaling.Negated(!on)
	case *[]float64:
		items, _ := o.List(name, maxNumbers)
		list := make([]float64, len(items))
		for i, item := range items {
			if json.Unmarshal(item, &list[i]) != nil {
				o.WrongType(name, "a list of numbers", item)
				return
			}
		}
		if *d = list; len(list) == 0 {
			*d = nil
		}
	case *[]string:
		*d = texts(o, name, maxTexts, func(i int) string { return fmt.Sprintf("%s[%d]", name, i) }, "a string")
	case *scaling.Delimiters:
		if stops := readTexts(o, "stop", MaxStops); stops != nil {
			*d = stops
		}
	case *json.RawMessage:
		raw, _ := o.Take(name)
		if jsonread.Kind(raw) != "an object" {
			o.WrongType(name, "an object", raw)
			return
		}
		*d = raw
	case *scaling.Include:
		for i, word := range texts(o, name, MaxIncludes, func(int) string { return name }, "a list of strings") {
			if !d.Add(word) {
				o.Fail(jsonread.CodeValue, fmt.Sprintf("%s[%d]", name, i), "expected %s, but got '%s'.", jsonread.Or(s.Words), jsonread.Brief(word))
			}
		}
	}
}

// texts reads a list of texts; fault names what is at fault where one is none, want what it should be.
func texts(o *jsonread.Fields, name string, most int, fault func(i int) string, want string) []string {
	items, _ := o.List(name, most)
	list := make([]string, len(items))
	for i, item := range items {
		var ok bool
		if list[i], ok = jsonread.Text(item); !ok {
			o.WrongType(fault(i), want, item)
			return nil
		}
	}
	return list
}
