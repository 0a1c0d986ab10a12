package jsonread

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/errtext"
)

// object holds the fields of a JSON object that nobody has read yet, as they are written, and the first fault of those
// that have been.
type object struct {
	path string // of the object, for messages: "messages[2]."
	raw  map[string]json.RawMessage
	text []byte          // that Parse has read
	ctx  context.Context // of the request; nil: none
	note Note            // is told what is read; nil: nobody is
	Err  error           // the first fault
}

// Context returns the context of the request that the object belongs to. Values made of its fields last no
// longer.
func (o *object) Context() context.Context {
	if o.ctx == nil {
		return context.Background()
	}
	return o.ctx
}

// Source returns the text that Parse has read; nil for an object within.
func (o *object) Source() []byte { return o.text }

// read takes in the fields of an object. Of two with one name the last counts.
func (o *object) read(object json.RawMessage) {
	o.raw = make(map[string]json.RawMessage)
	n := 0
	for written, value := range Members(object) {
		if n++; n > MaxFields {
			o.Err = Errorf(CodeValue, strings.TrimSuffix(o.path, "."), "An object has more than %d fields.", MaxFields)
			return
		}
		name, ok := Text(written)
		if !ok || len(name) > MaxNameLen {
			o.Err = Errorf(CodeValue, strings.TrimSuffix(o.path, "."), "The name of a field is longer than %d bytes: '%s'.", MaxNameLen, Brief(written))
			return
		}
		o.raw[name] = value
	}
}

// Take removes a field; ok is false for absent and null ones and after a fault.
func (o *object) Take(name string) (raw json.RawMessage, ok bool) {
	o.tell(name, Shape{})
	return o.take(name)
}

// take is Take of a field whose shape has been told.
func (o *object) take(name string) (raw json.RawMessage, ok bool) {
	raw, ok = o.raw[name]
	delete(o.raw, name)
	if o.Err != nil || !ok || string(raw) == "null" {
		return nil, false
	}
	return raw, true
}

// tell tells of a read.
func (o *object) tell(name string, s Shape) {
	if o.note != nil {
		o.note(o.path+name, s)
	}
}

// Raw returns a field as it is written, nil when it is absent, and leaves it unread.
func (o *object) Raw(name string) json.RawMessage { return o.raw[name] }

// Put gives the object a field in place of one that was read.
func (o *object) Put(name string, raw json.RawMessage) { o.raw[name] = raw }

// Has tells whether a field is there and not null, and leaves it unread.
func (o *object) Has(name string) bool {
	raw, ok := o.raw[name]
	return ok && string(raw) != "null"
}

// Fail notes a fault of a field, unless there has been one before.
func (o *object) Fail(code, name, format string, args ...any) {
	if o.Err == nil {
		o.Err = Errorf(code, o.path+name, "Invalid '%s': %s", o.path+name, errtext.Sprintf(format, args...))
	}
}

// WrongType is a fault that says what was found in place of want.
func (o *object) WrongType(name, want string, raw json.RawMessage) {
	o.Fail(CodeType, name, "expected %s, but got %s instead.", want, Kind(raw))
}

// Refuse refuses fields that ask for what the server does not do; empty values do not.
func (o *object) Refuse(names ...string) {
	for _, name := range names {
		if raw, ok := o.take(name); ok && !slices.Contains([]string{"false", "[]", "{}", `""`, "0"}, string(raw)) {
			o.Fail(CodeUnsupported, name, "this server does not support it.")
		}
	}
}

// Ignore reads fields that change nothing here.
func (o *object) Ignore(names ...string) {
	for _, name := range names {
		delete(o.raw, name)
	}
}

// Unread lists the fields nobody has read, sorted.
func (o *object) Unread() []string {
	names := make([]string, 0, len(o.raw))
	for name := range o.raw {
		names = append(names, o.path+name)
	}
	slices.Sort(names)
	return names
}
