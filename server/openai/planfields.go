package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// planFields is a plan as an object in JSON. It checks types and lists; the plan checks
// what the values may be.
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
			o.Take(name) // null
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

func (p *planFields) Name(key string, dst *string) bool {
	return p.read(key, func(o *jsonread.Fields, name string) { o.String(name, dst) })
}

func (p *planFields) Count(key string, dst *int) bool {
	return p.read(key, func(o *jsonread.Fields, name string) { o.Int(name, dst, 1, scaling.MaxCount) })
}

func (p *planFields) CountOrAuto(key string, dst *int) bool {
	return p.read(key, func(o *jsonread.Fields, name string) {
		if string(o.Raw(name)) == `"auto"` {
			*dst = scaling.AutoN
			o.Ignore(name)
			return
		}
		o.Int(name, dst, 1, scaling.MaxCount)
	})
}

func (p *planFields) Number(key string, dst *float64, lo, hi float64) bool {
	return p.read(key, func(o *jsonread.Fields, name string) { o.Float64(name, dst, lo, hi) })
}

func (p *planFields) Numbers(key string, dst *[]float64) bool {
	return p.read(key, func(o *jsonread.Fields, name string) {
		var list []float64
		items, _ := o.List(name, maxNumbers)
		for _, item := range items {
			var v float64
			if json.Unmarshal(item, &v) != nil {
				o.WrongType(name, "a list of numbers", item)
				return
			}
			list = append(list, v)
		}
		*dst = list
	})
}

// maxNumbers bounds a plan's list of numbers.
const maxNumbers = 16

func (p *planFields) Temperature(key string, dst *float32) bool {
	return p.read(key, func(o *jsonread.Fields, name string) { o.Float32(name, dst, 0, 2) })
}

// Switch reads true and false; an object in its place has settings of its own.
func (p *planFields) Switch(key string, dst *bool) bool {
	return jsonread.Kind(p.o.Raw(key)) != "an object" && p.read(key, func(o *jsonread.Fields, name string) { o.Bool(name, dst) })
}

func (p *planFields) Texts(key string, dst *[]string) bool {
	return p.read(key, func(o *jsonread.Fields, _ string) {
		if stops := (Fields{o}).stop(); stops != nil {
			*dst = stops
		}
	})
}

func (p *planFields) List(key string, dst *[]string) bool {
	return p.read(key, func(o *jsonread.Fields, name string) {
		items, _ := o.List(name, maxTexts)
		list := make([]string, len(items))
		for i, item := range items {
			var ok bool
			if list[i], ok = jsonread.Text(item); !ok {
				o.WrongType(fmt.Sprintf("%s[%d]", name, i), "a string", item)
				return
			}
		}
		*dst = list
	})
}

// maxTexts bounds a plan's list of texts.
const maxTexts = 64

func (p *planFields) JSON(key string, dst *[]byte) bool {
	return p.read(key, func(o *jsonread.Fields, name string) {
		raw, _ := o.Take(name)
		if jsonread.Kind(raw) != "an object" {
			o.WrongType(name, "an object", raw)
			return
		}
		*dst = raw
	})
}

func (p *planFields) Words(key string, known []string, add func(word string)) bool {
	return p.read(key, func(o *jsonread.Fields, name string) {
		items, _ := o.List(name, MaxIncludes)
		for i, item := range items {
			word, ok := jsonread.Text(item)
			switch {
			case !ok:
				o.WrongType(name, "a list of strings", item)
				return
			case slices.Contains(known, word):
				add(word)
			default:
				o.Fail(jsonread.CodeValue, fmt.Sprintf("%s[%d]", name, i), "expected %s, but got '%s'.", jsonread.Or(known), jsonread.Brief(word))
			}
		}
	})
}
