package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fields reads a JSON object field by field, checking types and ranges on the
// way. It keeps the first fault, and every read after one does nothing. null
// is as good as absent. What has not been read at the end is unknown.
type fields struct {
	path string // of the object, for messages: "messages[2]."
	raw  map[string]json.RawMessage
	err  error
}

// readFields reads a request's body, for as long as Options.BodyTimeout.
func (s *Server) readFields(w http.ResponseWriter, r *http.Request) (*fields, error) {
	// The deadline is the body's alone: left on the connection, it would end
	// long streams. Writers without deadlines are those of tests.
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(s.opt.BodyTimeout))
	body, err := io.ReadAll(r.Body)
	if err != nil {
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			return nil, err
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, errSlowBody
		}
		return nil, invalid(codeJSON, "", "The request body could not be read.")
	}
	_ = rc.SetReadDeadline(time.Time{})
	return parseFields(body)
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

// parseFields reads a JSON object.
func parseFields(body []byte) (*fields, error) {
	f := &fields{}
	if err := json.Unmarshal(body, &f.raw); err != nil {
		var syntax *json.SyntaxError
		switch {
		case len(bytes.TrimSpace(body)) == 0:
			return nil, invalid(codeJSON, "", "The request body is empty; a JSON object is wanted.")
		case errors.As(err, &syntax):
			return nil, invalid(codeJSON, "", "The request body is not valid JSON: %v (at byte %d).", syntax, syntax.Offset)
		}
		return nil, invalid(codeType, "", "The request body must be a JSON object, not %s.", kind(body))
	}
	if f.raw == nil {
		return nil, invalid(codeType, "", "The request body must be a JSON object, not null.")
	}
	return f, nil
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

func (f *fields) string(name string, dst *string) {
	if raw, ok := f.take(name); ok && json.Unmarshal(raw, dst) != nil {
		f.wrongType(name, "a string", raw)
	}
}

// ids reads a list of token ids. Whether the vocabulary has them is the model's to say.
func (f *fields) ids(name string, dst *[]int32) {
	if raw, ok := f.take(name); ok && json.Unmarshal(raw, dst) != nil {
		f.wrongType(name, "a list of token ids", raw)
	}
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
	sub := &fields{path: f.path + name + "."}
	if json.Unmarshal(raw, &sub.raw) != nil || sub.raw == nil {
		f.wrongType(name, "an object", raw)
		return nil, false
	}
	return sub, true
}

// list reads a field that is a list.
func (f *fields) list(name string) ([]json.RawMessage, bool) {
	raw, ok := f.take(name)
	if !ok {
		return nil, false
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		f.wrongType(name, "a list", raw)
		return nil, false
	}
	return items, true
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
