// Package jsonread reads the JSON of requests: field by field, each with its bounds,
// and with messages that name the field at fault.
//
// A body lies in memory once: values are parts of its text until they are read.
package jsonread

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/internal/errtext"
)

// Fields reads a JSON object field by field, checking types and ranges on the
// way. It keeps the first fault; reads after one do nothing. null counts as absent.
// What nobody has read at the end is unknown.
type Fields struct {
	object
	all bool // unread fields are faults, also in objects within
}

// Within gives f the context of its request.
func (f *Fields) Within(ctx context.Context) *Fields {
	f.ctx = ctx
	return f
}

// Error says what is wrong with a JSON text, or with one of its fields.
type Error struct {
	Code    string
	Param   string // the field at fault; empty: the text as a whole
	Message string
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an error about one field. Errors among args are worded for clients.
func Errorf(code, param, format string, args ...any) *Error {
	return &Error{code, param, errtext.Sprintf(format, args...)}
}

// The codes of errors, in OpenAI's words where it has any.
const (
	CodeJSON        = "invalid_json"
	CodeType        = "invalid_type"
	CodeValue       = "invalid_value"
	CodeMissing     = "missing_required_parameter"
	CodeUnknown     = "unknown_parameter"
	CodeUnsupported = "unsupported_parameter"
)

// Bounds on every object.
const (
	MaxDepth   = 160  // levels of nesting: 64 objects within one another in a schema take 133
	MaxFields  = 128  // of an object
	MaxNameLen = 256  // bytes of a field's name
	MaxString  = 1024 // bytes of a string that no model reads
)

// Parse reads a JSON object. The fields are parts of body, which must not
// change any more.
func Parse(body []byte) (*Fields, error) {
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return nil, Errorf(CodeJSON, "", "The request body is empty; send a JSON object.")
	case deeper(body, MaxDepth):
		return nil, Errorf(CodeJSON, "", "The request body is nested in more than %d levels.", MaxDepth)
	case !json.Valid(body):
		err := json.Unmarshal(body, new(json.RawMessage)) // says what is wrong
		at := int64(0)
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = syntax.Offset
		}
		return nil, Errorf(CodeJSON, "", "The request body is not valid JSON: %v (at byte %d).", err, at)
	case Kind(body) != "an object":
		return nil, Errorf(CodeType, "", "The request body must be a JSON object, not %s.", Kind(body))
	}
	f := &Fields{object: object{text: body}}
	f.read(body)
	return f, f.Err
}

// Text returns the text of raw, if that is a JSON string.
func Text(raw json.RawMessage) (s string, ok bool) {
	if Kind(raw) != "a string" {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), true
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// Float32 reads a number in [lo, hi].
func (f *Fields) Float32(name string, dst *float32, lo, hi float64) bool {
	v := float64(*dst)
	ok := f.Float64(name, &v, lo, hi)
	*dst = float32(v)
	return ok
}

// Float64 reads a number in [lo, hi] and tells whether there was one.
func (f *Fields) Float64(name string, dst *float64, lo, hi float64) bool {
	f.tell(name, Shape{Type: "number", Least: &lo, Most: &hi})
	raw, ok := f.take(name)
	if !ok {
		return false
	}
	if Kind(raw) != "a number" {
		f.WrongType(name, "a number", raw)
		return false
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || v < lo || v > hi {
		f.Fail(CodeValue, name, "expected a number between %g and %g, but got %s instead.", lo, hi, Brief(raw))
		return false
	}
	*dst = v
	return true
}

// Int reads an integer in [lo, hi] and tells whether there was one.
func (f *Fields) Int(name string, dst *int, lo, hi int) bool {
	f.tell(name, Shape{Type: "integer", Least: new(float64(lo)), Most: new(float64(hi))})
	raw, ok := f.take(name)
	if !ok {
		return false
	}
	if Kind(raw) != "a number" || bytes.ContainsAny(raw, ".eE") {
		f.WrongType(name, "an integer", raw)
		return false
	}
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || v < int64(lo) || v > int64(hi) {
		f.Fail(CodeValue, name, "expected an integer between %d and %d, but got %s instead.", lo, hi, Brief(raw))
		return false
	}
	*dst = int(v)
	return true
}

// Bool reads true or false.
func (f *Fields) Bool(name string, dst *bool) {
	f.tell(name, Shape{Type: "boolean"})
	if raw, ok := f.take(name); ok && json.Unmarshal(raw, dst) != nil {
		f.WrongType(name, "a boolean", raw)
	}
}

// String reads a name, or something as short: at most MaxString bytes.
func (f *Fields) String(name string, dst *string) {
	s := *dst
	if f.Text(name, &s); len(s) > MaxString {
		f.Fail(CodeValue, name, "at most %d bytes are allowed, but got %d.", MaxString, len(s))
		return
	}
	*dst = s
}

// OneOf reads one of several words; any other is a fault with a code.
func (f *Fields) OneOf(name, code string, dst *string, words ...string) {
	f.tell(name, Shape{Type: "string", Words: words})
	if f.String(name, dst); !slices.Contains(words, *dst) {
		f.Fail(code, name, "expected %s, but got '%s'.", Or(words), Brief(*dst))
	}
}

// Or lists words: a, b or c.
func Or(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Text reads a string that only the body's size bounds.
func (f *Fields) Text(name string, dst *string) {
	f.tell(name, Shape{Type: "string"})
	raw, ok := f.take(name)
	if !ok {
		return
	}
	s, ok := Text(raw)
	if !ok {
		f.WrongType(name, "a string", raw)
		return
	}
	*dst = s
}

// IDs reads a list of at most most token ids, of a vocabulary of vocab tokens.
func (f *Fields) IDs(name string, most, vocab int) []int32 {
	f.tell(name, Shape{Type: "array", Items: "integer"})
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	return f.Tokens(name, raw, most, vocab)
}

// Tokens reads raw, found at name, as a list of token ids.
func (f *Fields) Tokens(name string, raw json.RawMessage, most, vocab int) []int32 {
	f.tell(name, Shape{Type: "array", Items: "integer"})
	if Kind(raw) != "a list" {
		f.WrongType(name, "a list of token ids", raw)
		return nil
	}
	n := Count(raw)
	if n > most {
		f.Fail(CodeValue, name, "at most %d tokens are allowed, but got %d.", most, n)
		return nil
	}
	ids := make([]int32, 0, n)
	for item := range Elements(raw) {
		if Kind(item) != "a number" || bytes.ContainsAny(item, ".eE") {
			f.WrongType(name, "a list of token ids", item)
			return nil
		}
		id, err := strconv.ParseInt(string(item), 10, 32)
		if err != nil || id < 0 || id >= int64(vocab) {
			f.Fail(CodeValue, fmt.Sprintf("%s[%d]", name, len(ids)), "%s is not a token id between 0 and %d.", Brief(item), vocab-1)
			return nil
		}
		ids = append(ids, int32(id))
	}
	return ids
}

// Object reads a field that is an object of its own.
func (f *Fields) Object(name string) (*Fields, bool) {
	f.tell(name, Shape{Type: "object"})
	raw, ok := f.take(name)
	if !ok {
		return nil, false
	}
	return f.Sub(name, raw)
}

// Sub reads raw, found at name, as an object.
func (f *Fields) Sub(name string, raw json.RawMessage) (*Fields, bool) {
	if Kind(raw) != "an object" {
		f.WrongType(name, "an object", raw)
		return nil, false
	}
	sub := &Fields{object{path: f.path + name + ".", ctx: f.ctx, note: f.note}, f.all}
	sub.read(raw)
	return sub, true
}

// In has an object within f read, and adopts it. It tells whether there is one.
func (f *Fields) In(name string, read func(o *Fields)) bool {
	o, ok := f.Object(name)
	if ok {
		read(o)
		f.Adopt(o)
	}
	return ok
}

// All makes faults of fields that nobody reads, in f and what is within.
func (f *Fields) All() *Fields {
	f.all = true
	return f
}

// Adopt takes over the fault and the unknown fields of an object inside f, as
// far as o has room for them.
func (f *Fields) Adopt(sub *Fields) {
	if sub.all && sub.Err == nil {
		for _, name := range sub.Unread() {
			sub.Err = Errorf(CodeUnknown, name, "Invalid '%s': it is unknown.", name)
			break
		}
	}
	if f.Err == nil {
		f.Err = sub.Err
	}
	for _, name := range slices.Sorted(maps.Keys(sub.raw)) { // else equal requests get different errors
		if len(f.raw) > 2*MaxFields {
			return
		}
		f.raw[sub.path[len(f.path):]+name] = sub.raw[name]
	}
}

// List reads a field that is a list of at most most elements.
func (f *Fields) List(name string, most int) ([]json.RawMessage, bool) {
	f.tell(name, Shape{Type: "array"})
	raw, ok := f.take(name)
	if !ok {
		return nil, false
	}
	return f.Items(name, raw, most)
}

// Items reads raw, found at name, as a list of at most most elements.
func (f *Fields) Items(name string, raw json.RawMessage, most int) ([]json.RawMessage, bool) {
	f.tell(name, Shape{Type: "array"})
	if Kind(raw) != "a list" {
		f.WrongType(name, "a list", raw)
		return nil, false
	}
	n := Count(raw)
	if n > most {
		f.Fail(CodeValue, name, "at most %d elements are allowed, but got %d.", most, n)
		return nil, false
	}
	return slices.AppendSeq(make([]json.RawMessage, 0, n), Elements(raw)), true
}

// Each reads a field that is a list of at most most objects, one by one, until the first
// fault. It adopts them.
func (f *Fields) Each(name string, most int) iter.Seq2[int, *Fields] {
	f.tell(name, Shape{Type: "array", Items: "object"})
	if raw, ok := f.take(name); ok {
		return f.EachOf(name, raw, most)
	}
	return func(func(int, *Fields) bool) {}
}

// EachOf is Each of raw, found at name.
func (f *Fields) EachOf(name string, raw json.RawMessage, most int) iter.Seq2[int, *Fields] {
	f.tell(name, Shape{Type: "array", Items: "object"})
	return func(yield func(int, *Fields) bool) {
		items, _ := f.Items(name, raw, most)
		for i, raw := range items {
			o, ok := f.Sub(fmt.Sprintf("%s[%d]", name, i), raw)
			if !ok || !yield(i, o) {
				return
			}
			if f.Adopt(o); f.Err != nil {
				return
			}
		}
	}
}

// Kind names the JSON type of raw, with its article.
func Kind(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// Brief returns raw, cut to fit into a message.
func Brief[T ~string | ~[]byte](raw T) string {
	const most = 40
	if len(raw) <= most {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:most]), "") + "..."
}
