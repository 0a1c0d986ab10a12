package receipt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// Endpoints are the endpoints whose answers have receipts.
var Endpoints = []string{"/v1/chat/completions", "/v1/completions"}

// Saved is the content of a file.
type Saved struct {
	Receipt Receipt
	Texts   map[int]string // of choices, by their index; nil: the file is a receipt alone
}

// Read reads a kept answer with a receipt, the events of a stream with one, or a receipt alone. It checks that
// hashes fit the values beside them; errors name the key at fault.
func Read(data []byte) (*Saved, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	if bytes.HasPrefix(data, []byte("data:")) || bytes.HasPrefix(data, []byte(":")) || bytes.HasPrefix(data, []byte("event:")) {
		return readStream(data)
	}
	f, err := parse(data)
	if err != nil {
		return nil, err
	}
	s := &Saved{}
	if f.In("receipt", s.Receipt.read) {
		s.Texts = map[int]string{}
		s.addTexts(f.Raw("choices"))
	} else if f.Err == nil && !f.Has("request_sha256") {
		return nil, errors.New("it has no receipt: ask for one with \"receipt\": true in the request")
	} else if f.Err == nil {
		s.Receipt.read(f)
		if unread := f.Unread(); f.Err == nil && len(unread) > 0 {
			f.Fail(jsonread.CodeUnknown, unread[0], "it is unknown.")
		}
	}
	if f.Err != nil {
		return nil, f.Err
	}
	return s, s.check()
}

// parse reads an object.
func parse(data []byte) (*jsonread.Fields, error) {
	f, err := jsonread.Parse(data)
	if fault := (*jsonread.Error)(nil); errors.As(err, &fault) && fault.Param == "" {
		return nil, errors.New(strings.Replace(strings.TrimSuffix(fault.Message, "."), "The request body", "it", 1))
	}
	return f, err
}

// readStream reads the events of a stream, as curl -N shows them.
func readStream(data []byte) (*Saved, error) {
	s := &Saved{Texts: map[int]string{}}
	found := false
	for line := range bytes.Lines(data) {
		event, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if event = bytes.TrimSpace(event); !ok || string(event) == "[DONE]" {
			continue
		}
		f, err := parse(event)
		if err != nil {
			return nil, fmt.Errorf("an event of the stream: %w", err)
		}
		s.addTexts(f.Raw("choices"))
		found = f.In("receipt", s.Receipt.read) || found
		if f.Err != nil {
			return nil, f.Err
		}
	}
	if !found {
		return nil, errors.New("the stream has no receipt: ask for one with \"receipt\": true, and keep its end")
	}
	return s, s.check()
}

// addTexts takes in the texts of an answer's choices, or of a chunk's. What cannot be
// read has none, and is found by its hash.
func (s *Saved) addTexts(raw json.RawMessage) {
	var choices []struct {
		Index          int
		Text           string
		Message, Delta struct{ Content string }
	}
	if json.Unmarshal(raw, &choices) != nil {
		return
	}
	for _, c := range choices {
		s.Texts[c.Index] += c.Text + c.Message.Content + c.Delta.Content
	}
}

// read reads a receipt. Its faults are f's.
func (r *Receipt) read(f *jsonread.Fields) { f.All().Struct(r) }

// Check reports what a receipt lacks.
func (r *Receipt) Check(f *jsonread.Fields) {
	if r.Version != Version {
		f.Fail(jsonread.CodeValue, "version", "this program reads version %d, but got %d.", Version, r.Version)
	}
	for _, field := range []struct {
		name    string
		missing bool
	}{
		{"endpoint", r.Endpoint == ""}, {"request_sha256", r.Hash == ""}, {"model.name", r.Model.Name == ""}, {"model.sha256", r.Model.SHA256 == ""},
		{"prompts", len(r.Prompts) == 0}, {"kernels", r.Kernels == ""}, {"choices", len(r.Choices) == 0},
	} {
		if field.missing {
			f.Fail(jsonread.CodeMissing, field.name, "it is missing.")
		}
	}
	if !slices.Contains(Endpoints, r.Endpoint) {
		f.Fail(jsonread.CodeValue, "endpoint", "expected %s, but got '%s'.", strings.Join(Endpoints, " or "), jsonread.Brief(r.Endpoint))
	}
}

// UnmarshalFields reads the numbers that are there. What an older program has not written is off.
func (s *Sampling) UnmarshalFields(f *jsonread.Fields) {
	var seed string
	f.String("seed", &seed)
	var err error
	if s.Seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
		f.Fail(jsonread.CodeValue, "seed", "expected a string of digits that is a number of 64 bits, but got '%s'.", jsonread.Brief(seed))
	}
	for _, w := range s.whole() {
		f.Int(w.name, w.value, w.lo, w.hi)
	}
	for i := range sampling.Fields {
		row := &sampling.Fields[i]
		if n := 0; row.Whole() && f.Int(row.Name, &n, int(row.Lo), int(row.Hi)) {
			row.SetValue(&s.Params, float64(n))
		} else if x := 0.0; !row.Whole() && f.Float64(row.Name, &x, row.Lo, row.Hi) {
			row.SetValue(&s.Params, x)
		}
	}
}

// Check holds the token ids against their hash.
func (c *Choice) Check(f *jsonread.Fields) {
	switch {
	case c.Hash == "":
		f.Fail(jsonread.CodeMissing, "tokens_sha256", "it is missing.")
	case c.IDs != nil && (len(c.IDs) != c.Tokens || hashOf(c.IDs) != c.Hash):
		f.Fail(jsonread.CodeValue, "tokens_sha256", "it is not that of the %d token_ids.", len(c.IDs))
	}
}

// check holds the receipt's hashes against what they are of.
func (s *Saved) check() error {
	r := &s.Receipt
	if r.Request != "" && sum([]byte(r.Request)) != r.Hash {
		return jsonread.Errorf(jsonread.CodeValue, "receipt.request_sha256", "Invalid 'receipt.request_sha256': it is not that of receipt.request.")
	}
	for i, c := range r.Choices {
		if text, ok := s.Texts[c.Index]; ok && c.Text != "" && sum([]byte(text)) != c.Text {
			return jsonread.Errorf(jsonread.CodeValue, fmt.Sprintf("receipt.choices[%d].text_sha256", i), "Invalid 'receipt.choices[%d].text_sha256': it is not that of the text in choices[%d].", i, c.Index)
		}
	}
	return nil
}
