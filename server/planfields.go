package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/tts/scaling"
)

// planFields are a plan as an object in JSON. Settings that are absent stay as
// they are. What they may be is the plan's to say, once they are numbers and strings.
type planFields struct {
	o        *fields
	sections []*fields // objects in o; close puts back what nobody has read of them
}

var _ scaling.Source = (*planFields)(nil)

// at finds the object that holds the field of a path, and the field's name; nil:
// there is none.
func (p *planFields) at(key string) (o *fields, name string) {
	section, name, nested := strings.Cut(key, ".")
	if !nested {
		return p.o, key
	}
	path := p.o.path + section + "."
	if i := slices.IndexFunc(p.sections, func(o *fields) bool { return o.path == path }); i >= 0 {
		return p.sections[i], name
	}
	o, ok := p.o.object(section)
	if !ok {
		return nil, ""
	}
	p.sections = append(p.sections, o)
	return o, name
}

// read calls f with the object that holds a field, if it does, and keeps the
// first fault of all. It tells whether the field could be read.
func (p *planFields) read(key string, f func(o *fields, name string)) bool {
	o, name := p.at(key)
	if o == nil || !o.has(name) {
		if o != nil {
			o.take(name) // null
		}
		return false
	}
	f(o, name)
	if p.o.err == nil {
		p.o.err = o.err
	}
	return o.err == nil && p.o.err == nil
}

// close leaves the fields that nobody has read in the plan's object.
func (p *planFields) close() {
	for _, o := range p.sections {
		p.o.adopt(o)
	}
}

func (p *planFields) Name(key string, dst *string) bool {
	return p.read(key, func(o *fields, name string) { o.string(name, dst) })
}

func (p *planFields) Count(key string, dst *int) bool {
	return p.read(key, func(o *fields, name string) { o.int(name, dst, 1, scaling.MaxCount) })
}

func (p *planFields) CountOrAuto(key string, dst *int) bool {
	return p.read(key, func(o *fields, name string) {
		if string(o.raw[name]) == `"auto"` {
			*dst = scaling.AutoN
			o.ignore(name)
			return
		}
		o.int(name, dst, 1, scaling.MaxCount)
	})
}

func (p *planFields) Number(key string, dst *float64, lo, hi float64) bool {
	return p.read(key, func(o *fields, name string) { o.double(name, dst, lo, hi) })
}

func (p *planFields) Temperature(key string, dst *float32) bool {
	return p.read(key, func(o *fields, name string) { o.float(name, dst, 0, 2) })
}

// Switch reads true and false; an object in its place has settings of its own.
func (p *planFields) Switch(key string, dst *bool) bool {
	return kind(p.o.raw[key]) != "an object" && p.read(key, func(o *fields, name string) { o.bool(name, dst) })
}

func (p *planFields) Texts(key string, dst *[]string) bool {
	return p.read(key, func(o *fields, _ string) {
		if stops := o.stop(); stops != nil {
			*dst = stops
		}
	})
}

func (p *planFields) Words(key string, known []string, add func(word string)) bool {
	return p.read(key, func(o *fields, name string) {
		items, _ := o.list(name, maxIncludes)
		for i, item := range items {
			word, ok := text(item)
			switch {
			case !ok:
				o.wrongType(name, "a list of strings", item)
				return
			case slices.Contains(known, word):
				add(word)
			default:
				last := len(known) - 1
				o.fail(codeValue, fmt.Sprintf("%s[%d]", name, i), "expected %s or %s, but got '%s'.", strings.Join(known[:last], ", "), known[last], brief([]byte(word)))
			}
		}
	})
}
