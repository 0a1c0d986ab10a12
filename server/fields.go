package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fields reads a JSON object field by field, checking types and ranges on the
// way. It keeps the first fault, and every read after one does nothing. null
// is as good as absent. What has not been read at the end is unknown.
type fields struct {
	path string // of the object, for messages: "messages[2]."
	raw  map[string]json.RawMessage
	err  error
}

// finish reports the first fault, or else what to do about fields that nobody
// has read: those that ask for what no endpoint does are refused, and those
// that nobody knows refused or logged once.
func (s *Server) finish(f *fields) error {
	if f.err != nil {
		return f.err
	}
	for _, name := range f.unread() {
		neutral, known := unsupported[name]
		switch {
		case known && neutral.asks(f.raw[name]):
			return invalid(codeUnsupported, name, "Invalid '%s': this server does not support it.", name)
		case known || harmless[name]:
			continue
		}
		if s.opt.Strict {
			return invalid(codeUnknown, name, "Unknown parameter: '%s'.", brief([]byte(name)))
		}
		if s.unknown.first(name) {
			s.log.Warn().Str("field", brief([]byte(name))).Msg("ignoring an unknown request field")
		}
	}
	return nil
}

// parseFields reads a JSON object. The fields are parts of body, which must not
// change any more.
func parseFields(body []byte) (*fields, error) {
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return nil, invalid(codeJSON, "", "The request body is empty; a JSON object is wanted.")
	case deeper(body, maxDepth):
		return nil, invalid(codeJSON, "", "The request body has values within values in more than %d levels.", maxDepth)
	case !json.Valid(body):
		err := json.Unmarshal(body, new(json.RawMessage)) // says what is wrong
		at := int64(0)
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = syntax.Offset
		}
		return nil, invalid(codeJSON, "", "The request body is not valid JSON: %v (at byte %d).", err, at)
	case kind(body) != "an object":
		return nil, invalid(codeType, "", "The request body must be a JSON object, not %s.", kind(body))
	}
	f := &fields{}
	f.read(body)
	return f, f.err
}

// read takes in the fields of an object. Of two with one name the last counts.
func (f *fields) read(object json.RawMessage) {
	f.raw = make(map[string]json.RawMessage)
	n := 0
	for written, value := range members(object) {
		if n++; n > maxFields {
			f.err = invalid(codeValue, strings.TrimSuffix(f.path, "."), "An object has more than %d fields.", maxFields)
			return
		}
		name, ok := text(written)
		if !ok || len(name) > maxNameLen {
			f.err = invalid(codeValue, strings.TrimSuffix(f.path, "."), "The name of a field is longer than %d bytes: '%s'.", maxNameLen, brief(written))
			return
		}
		f.raw[name] = value
	}
}

// text is a JSON string's, if raw is one.
func text(raw json.RawMessage) (s string, ok bool) {
	if kind(raw) != "a string" {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), true
	}
	return s, json.Unmarshal(raw, &s) == nil
}

// take removes a field; ok is false for absent and null ones and after a fault.
func (f *fields) take(name string) (raw json.RawMessage, ok bool) {
	raw, ok = f.raw[name]
	delete(f.raw, name)
	if f.err != nil || !ok || string(raw) == "null" {
		return nil, false
	}
	return raw, true
}

// has tells whether a field is there and not null, and leaves it.
func (f *fields) has(name string) bool {
	raw, ok := f.raw[name]
	return ok && string(raw) != "null"
}

func (f *fields) fail(code, name, format string, args ...any) {
	if f.err == nil {
		f.err = invalid(code, f.path+name, "Invalid '%s': %s", f.path+name, fmt.Sprintf(format, args...))
	}
}

// wrongType is a fault that says what was found in place of want.
func (f *fields) wrongType(name, want string, raw json.RawMessage) {
	f.fail(codeType, name, "expected %s, but got %s instead.", want, kind(raw))
}

func (f *fields) float(name string, dst *float32, lo, hi float64) {
	v := float64(*dst)
	f.double(name, &v, lo, hi)
	*dst = float32(v)
}

func (f *fields) double(name string, dst *float64, lo, hi float64) {
	raw, ok := f.take(name)
	if !ok {
		return
	}
	if kind(raw) != "a number" {
		f.wrongType(name, "a number", raw)
		return
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || v < lo || v > hi {
		f.fail(codeValue, name, "expected a number between %g and %g, but got %s instead.", lo, hi, brief(raw))
		return
	}
	*dst = v
}

// int reads an integer in [lo, hi] and tells whether there was one.
func (f *fields) int(name string, dst *int, lo, hi int) bool {
	raw, ok := f.take(name)
	if !ok {
		return false
	}
	if kind(raw) != "a number" || bytes.ContainsAny(raw, ".eE") {
		f.wrongType(name, "an integer", raw)
		return false
	}
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || v < int64(lo) || v > int64(hi) {
		f.fail(codeValue, name, "expected an integer between %d and %d, but got %s instead.", lo, hi, brief(raw))
		return false
	}
	*dst = int(v)
	return true
}

func (f *fields) bool(name string, dst *bool) {
	if raw, ok := f.take(name); ok && json.Unmarshal(raw, dst) != nil {
		f.wrongType(name, "a boolean", raw)
	}
}

// string reads a name, or something as short: at most maxString bytes.
func (f *fields) string(name string, dst *string) {
	s := *dst
	if f.text(name, &s); len(s) > maxString {
		f.fail(codeValue, name, "at most %d bytes are allowed, but got %d.", maxString, len(s))
		return
	}
	*dst = s
}

// text reads a string that only the body's size bounds.
func (f *fields) text(name string, dst *string) {
	raw, ok := f.take(name)
	if !ok {
		return
	}
	s, ok := text(raw)
	if !ok {
		f.wrongType(name, "a string", raw)
		return
	}
	*dst = s
}

// ids reads a list of at most so many token ids, of a vocabulary of vocab tokens.
func (f *fields) ids(name string, most, vocab int) []int32 {
	raw, ok := f.take(name)
	if !ok {
		return nil
	}
	return f.tokens(name, raw, most, vocab)
}

// tokens reads raw, found at name, as a list of token ids.
func (f *fields) tokens(name string, raw json.RawMessage, most, vocab int) []int32 {
	if kind(raw) != "a list" {
		f.wrongType(name, "a list of token ids", raw)
		return nil
	}
	n := count(raw)
	if n > most {
		f.fail(codeValue, name, "at most %d tokens are allowed, but got %d.", most, n)
		return nil
	}
	ids := make([]int32, 0, n)
	for item := range elements(raw) {
		if kind(item) != "a number" || bytes.ContainsAny(item, ".eE") {
			f.wrongType(name, "a list of token ids", item)
			return nil
		}
		id, err := strconv.ParseInt(string(item), 10, 32)
		if err != nil || id < 0 || id >= int64(vocab) {
			f.fail(codeValue, fmt.Sprintf("%s[%d]", name, len(ids)), "%s is no token id between 0 and %d.", brief(item), vocab-1)
			return nil
		}
		ids = append(ids, int32(id))
	}
	return ids
}

// object reads a field that is an object of its own.
func (f *fields) object(name string) (*fields, bool) {
	raw, ok := f.take(name)
	if !ok {
		return nil, false
	}
	return f.sub(name, raw)
}

// sub reads raw, found at name, as an object.
func (f *fields) sub(name string, raw json.RawMessage) (*fields, bool) {
	if kind(raw) != "an object" {
		f.wrongType(name, "an object", raw)
		return nil, false
	}
	sub := &fields{path: f.path + name + "."}
	sub.read(raw)
	return sub, true
}

// list reads a field that is a list of at most so many elements.
func (f *fields) list(name string, most int) ([]json.RawMessage, bool) {
	raw, ok := f.take(name)
	if !ok {
		return nil, false
	}
	return f.items(name, raw, most)
}

// items reads raw, found at name, as a list of at most so many elements.
func (f *fields) items(name string, raw json.RawMessage, most int) ([]json.RawMessage, bool) {
	if kind(raw) != "a list" {
		f.wrongType(name, "a list", raw)
		return nil, false
	}
	n := count(raw)
	if n > most {
		f.fail(codeValue, name, "at most %d elements are allowed, but got %d.", most, n)
		return nil, false
	}
	return slices.AppendSeq(make([]json.RawMessage, 0, n), elements(raw)), true
}

// refuse faults fields that ask for what this server does not do.
func (f *fields) refuse(names ...string) {
	for _, name := range names {
		if raw, ok := f.take(name); ok && never.asks(raw) {
			f.fail(codeUnsupported, name, "this server does not support it.")
		}
	}
}

// ignore reads fields that change nothing here.
func (f *fields) ignore(names ...string) {
	for _, name := range names {
		delete(f.raw, name)
	}
}

// unread lists the fields nobody has read, sorted.
func (f *fields) unread() []string {
	names := make([]string, 0, len(f.raw))
	for name := range f.raw {
		names = append(names, f.path+name)
	}
	slices.Sort(names)
	return names
}

// kind names the JSON type of raw, with its article.
func kind(raw json.RawMessage) string {
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

// brief is raw short enough for a message.
func brief(raw []byte) string {
	const most = 40
	if len(raw) <= most {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:most]), "") + "..."
}
