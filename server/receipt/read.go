package receipt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/server/jsonread"
)

// Bounds of what Read takes. A file's size is the caller's to bound.
const (
	maxChoices    = 1 << 12 // as many as a server may allow
	maxCandidates = 1 << 16
	maxTokens     = 1 << 22 // of a choice
	maxSteps      = 1 << 12
	maxAdapters   = 1 << 12
)

// Endpoints are those whose answers have receipts.
var Endpoints = []string{"/v1/chat/completions", "/v1/completions"}

// Saved is what a file holds.
type Saved struct {
	Receipt Receipt
	Texts   map[int]string // of choices, by their index; nil: the file is a receipt alone
}

// Read reads what somebody has kept: an answer with a receipt, the events of a stream
// with one, or a receipt alone. It checks that hashes are those of what they stand
// besides; errors name the key at fault.
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
	if f.In("receipt", func(r *jsonread.Fields) { s.Receipt = read(r.All()) }) {
		s.Texts = map[int]string{}
		s.addTexts(f.Raw("choices"))
	} else if f.Err == nil && !f.Has("request_sha256") {
		return nil, errors.New("it has no receipt: ask for one with \"receipt\": true in the request")
	} else if f.Err == nil {
		s.Receipt = read(f.All())
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
		found = f.In("receipt", func(r *jsonread.Fields) { s.Receipt = read(r.All()) }) || found
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
func read(f *jsonread.Fields) (r Receipt) {
	if f.Int("version", &r.Version, 0, math.MaxInt32); f.Err == nil && r.Version != Version {
		f.Fail(jsonread.CodeValue, "version", "this program reads version %d, but got %d.", Version, r.Version)
	}
	f.String("endpoint", &r.Endpoint)
	f.Text("request", &r.Request)
	text(f, "request_sha256", &r.Hash)
	f.String("kernels", &r.Kernels)
	f.In("model", r.Model.read)
	f.In("build", func(b *jsonread.Fields) {
		b.String("version", &r.Build.Version)
		b.String("revision", &r.Build.Revision)
		b.Bool("modified", &r.Build.Modified)
		b.String("go", &r.Build.Go)
	})
	f.In("sampling", r.Sampling.read)
	f.In("search", func(s *jsonread.Fields) { r.Search = readSearch(s) })
	for _, p := range f.Each("prompts", maxChoices) {
		var v Prompt
		p.Int("tokens", &v.Tokens, 0, math.MaxInt32)
		text(p, "sha256", &v.Hash)
		r.Prompts = append(r.Prompts, v)
	}
	r.Choices = readChoices(f, "choices", maxChoices)
	r.Candidates = readChoices(f, "candidates", maxCandidates)
	for _, field := range []struct {
		name    string
		missing bool
	}{
		{"version", r.Version == 0}, {"endpoint", r.Endpoint == ""}, {"request_sha256", r.Hash == ""}, {"model.name", r.Model.Name == ""}, {"model.sha256", r.Model.SHA256 == ""},
		{"prompts", len(r.Prompts) == 0}, {"kernels", r.Kernels == ""}, {"choices", len(r.Choices) == 0},
	} {
		if field.missing {
			f.Fail(jsonread.CodeMissing, field.name, "it is missing.")
		}
	}
	if !slices.Contains(Endpoints, r.Endpoint) {
		f.Fail(jsonread.CodeValue, "endpoint", "expected %s, but got '%s'.", strings.Join(Endpoints, " or "), jsonread.Brief(r.Endpoint))
	}
	return r
}

// text reads a SHA-256 in hexadecimal.
func text(f *jsonread.Fields, name string, dst *string) {
	if f.String(name, dst); *dst == "" {
		return
	}
	if len(*dst) != 64 || strings.Trim(*dst, "0123456789abcdef") != "" {
		f.Fail(jsonread.CodeValue, name, "expected 64 hexadecimal digits, but got '%s'.", jsonread.Brief(*dst))
	}
}

func (m *Model) read(f *jsonread.Fields) {
	f.String("name", &m.Name)
	text(f, "sha256", &m.SHA256)
	f.String("metadata", &m.Metadata)
	f.String("packing", &m.Packing)
	for _, o := range f.Each("adapters", maxAdapters) {
		var a Adapter
		o.String("name", &a.Name)
		text(o, "sha256", &a.SHA256)
		o.Float32("scale", &a.Scale, -math.MaxFloat32, math.MaxFloat32)
		m.Adapters = append(m.Adapters, a)
	}
	f.String("kv", &m.KV)
	f.Int("context", &m.Context, 0, math.MaxInt32)
}

func (s *Sampling) read(f *jsonread.Fields) {
	var seed string
	f.String("seed", &seed)
	v, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		f.Fail(jsonread.CodeValue, "seed", "expected a string of digits that is a number of 64 bits, but got '%s'.", jsonread.Brief(seed))
	}
	s.Seed = Seed(v)
	f.Int("n", &s.N, 1, maxChoices)
	f.Float32("temperature", &s.Temperature, 0, 2)
	f.Float32("top_p", &s.TopP, 0, 1)
	f.Int("top_k", &s.TopK, 0, math.MaxInt32)
	f.Float32("min_p", &s.MinP, 0, 1)
	f.Float32("typical_p", &s.TypicalP, 0, 1)
	f.Float32("repetition_penalty", &s.RepetitionPenalty, 0, 10)
	f.Int("repeat_last_n", &s.RepetitionWindow, 0, math.MaxInt32)
	f.Float32("presence_penalty", &s.PresencePenalty, -2, 2)
	f.Float32("frequency_penalty", &s.FrequencyPenalty, -2, 2)
	f.Int("max_tokens", &s.MaxTokens, 0, math.MaxInt32)
	f.Int("min_tokens", &s.MinTokens, 0, math.MaxInt32)
	f.Int("thinking_token_budget", &s.MaxThinking, 0, math.MaxInt32)
}

func readSearch(f *jsonread.Fields) *Search {
	s := &Search{}
	if raw, ok := f.Take("plan"); !ok || jsonread.Kind(raw) != "an object" || len(raw) > 1<<16 {
		f.Fail(jsonread.CodeType, "plan", "expected an object of at most %d bytes.", 1<<16)
	} else {
		s.Plan = raw
	}
	f.In("verifier", func(m *jsonread.Fields) {
		s.Verifier = &Model{}
		s.Verifier.read(m)
	})
	f.In("probe", func(p *jsonread.Fields) {
		s.Probe = &Probe{}
		p.String("name", &s.Probe.Name)
		p.String("sha256", &s.Probe.SHA256)
	})
	reasons, _ := f.List("stop_reasons", maxChoices)
	for _, raw := range reasons {
		reason, ok := jsonread.Text(raw)
		if !ok || len(reason) > jsonread.MaxString {
			f.WrongType("stop_reasons", "a list of short strings", raw)
		}
		s.Stopped = append(s.Stopped, reason)
	}
	f.Bool("chosen", &s.Chosen)
	f.Bool("degraded", &s.Degraded)
	return s
}

func readChoices(f *jsonread.Fields, list string, most int) []Choice {
	var out []Choice
	for _, c := range f.Each(list, most) {
		var v Choice
		c.Int("index", &v.Index, 0, maxCandidates)
		c.Int("prompt", &v.Prompt, 0, maxChoices)
		if of := 0; c.Int("candidate", &of, 0, maxCandidates) {
			v.Candidate = &of
		}
		c.Int("tokens", &v.Tokens, 0, maxTokens)
		text(c, "tokens_sha256", &v.Hash)
		v.IDs = c.IDs("token_ids", maxTokens, math.MaxInt32)
		text(c, "text_sha256", &v.Text)
		c.String("finish_reason", &v.Finish)
		if score := float32(0); c.Has("score") {
			c.Float32("score", &score, -math.MaxFloat32, math.MaxFloat32)
			v.Score = &score
		}
		scores, _ := c.List("step_scores", maxSteps)
		for j, raw := range scores {
			score, err := strconv.ParseFloat(string(raw), 32)
			if err != nil {
				c.WrongType(fmt.Sprintf("step_scores[%d]", j), "a number", raw)
				break
			}
			v.Steps = append(v.Steps, float32(score))
		}
		switch {
		case v.Hash == "":
			c.Fail(jsonread.CodeMissing, "tokens_sha256", "it is missing.")
		case v.IDs != nil && (len(v.IDs) != v.Tokens || hashOf(v.IDs) != v.Hash):
			c.Fail(jsonread.CodeValue, "tokens_sha256", "it is not that of the %d token_ids.", len(v.IDs))
		}
		out = append(out, v)
	}
	return out
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
