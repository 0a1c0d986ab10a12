package responses

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
)

// Fields are a request's fields.
type Fields struct{ *jsonread.Fields }

// Settings are what a response repeats of its request.
type Settings struct {
	Instructions string
	Previous     string // id of the response that it follows
	Store        bool
	Metadata     json.RawMessage
	Tools        json.RawMessage
	ToolChoice   json.RawMessage
	Parallel     bool
	Effort       string
	MaxTokens    int
	Truncation   string
	User         string
	Text         json.RawMessage
}

// Create reads POST /v1/responses for a model. before finds what was said up to a
// response. The calling is nil where no tool may be called.
func (f Fields) Create(req *tts.Request, m *tts.Model, before func(id string) ([]template.Message, bool)) (*tts.Calling, *Settings) {
	s := &Settings{Store: true, Parallel: true, Truncation: "disabled", Text: json.RawMessage(`{"format":{"type":"text"}}`), Tools: json.RawMessage("[]"), ToolChoice: json.RawMessage(`"auto"`), Metadata: json.RawMessage("{}")}
	f.repeated(s)
	var said []template.Message
	if s.Previous != "" {
		var ok bool
		if said, ok = before(s.Previous); !ok {
			f.Fail(jsonread.CodeValue, "previous_response_id", "there is no response '%s': it was not stored, or is no longer kept.", jsonread.Brief([]byte(s.Previous)))
		}
	}
	said = f.input(slices.Clone(said))
	p := &req.Prompt
	if p.Messages = said; s.Instructions != "" {
		p.Messages = slices.Insert(slices.Clone(said), 0, template.Message{Role: roleSystem, Content: s.Instructions})
	}
	p.Truncate = s.Truncation == "auto"
	f.reasoning(req, s)
	hasMax := f.Int("max_output_tokens", &req.Sampling.MaxTokens, 1, math.MaxInt32)
	if hasMax {
		s.MaxTokens = req.Sampling.MaxTokens
	}
	o := openai.Fields{Fields: f.Fields}
	o.Sampling(req, m, 1)
	f.nestTools()
	c := o.ToolChoice(req, m)
	f.format(req, m, s)
	for _, name := range []string{"background", "conversation", "prompt", "include", "max_tool_calls", "top_logprobs", "context_management"} {
		if raw, ok := f.Take(name); ok && !slices.Contains([]string{"null", "false", "[]", "{}", "0"}, string(raw)) {
			f.Fail(jsonread.CodeUnsupported, name, "this server does not support it.")
		}
	}
	f.Ignore("service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "stream_options")
	return c, s
}

// repeated reads fields that the response repeats.
func (f Fields) repeated(s *Settings) {
	f.Text("instructions", &s.Instructions)
	f.String("previous_response_id", &s.Previous)
	f.Bool("store", &s.Store)
	f.String("user", &s.User)
	for _, field := range []struct {
		name string
		to   *json.RawMessage
	}{{"metadata", &s.Metadata}, {"tools", &s.Tools}, {"tool_choice", &s.ToolChoice}} {
		if raw := f.Raw(field.name); raw != nil && string(raw) != "null" {
			*field.to = raw
		}
	}
	if raw := f.Raw("parallel_tool_calls"); string(raw) == "false" {
		s.Parallel = false
	}
	if f.String("truncation", &s.Truncation); s.Truncation != "auto" && s.Truncation != "disabled" {
		f.Fail(jsonread.CodeValue, "truncation", "expected auto or disabled, but got '%s'.", jsonread.Brief([]byte(s.Truncation)))
	}
}

// reasoning reads whether the model thinks.
func (f Fields) reasoning(req *tts.Request, s *Settings) {
	o, ok := f.Object("reasoning")
	if !ok {
		return
	}
	o.String("effort", &s.Effort)
	o.Ignore("summary", "generate_summary")
	f.Adopt(o)
	if s.Effort == "" {
		return
	}
	if !slices.Contains(openai.Efforts, s.Effort) {
		f.Fail(jsonread.CodeValue, "reasoning.effort", "'%s' is none.", jsonread.Brief([]byte(s.Effort)))
	}
	req.Prompt.Extra = map[string]any{"reasoning_effort": s.Effort, "enable_thinking": s.Effort != "none"}
}

// format reads what the answer is held to.
func (f Fields) format(req *tts.Request, m *tts.Model, s *Settings) {
	if raw := f.Raw("text"); raw != nil && string(raw) != "null" {
		s.Text = raw
	}
	o, ok := f.Object("text")
	if !ok {
		return
	}
	o.Ignore("verbosity")
	hold := openai.Fields{Fields: f.Fields}
	if format, ok := o.Object("format"); ok {
		kind := "text"
		format.String("type", &kind)
		format.Ignore("name", "description", "strict") // a schema is held to in any case
		raw, given := format.Take("schema")
		switch {
		case kind == "text":
		case kind == "json_object":
			hold.HoldTo(req, m, "text.format", tts.FormatSchema, schema.Object)
		case kind == "json_schema" && given:
			hold.HoldTo(req, m, "text.format", tts.FormatSchema, string(raw))
		case kind == "json_schema":
			format.Fail(jsonread.CodeMissing, "schema", "a schema is required.")
		default:
			format.Fail(jsonread.CodeUnsupported, "type", "expected text, json_object or json_schema, but got '%s'.", jsonread.Brief([]byte(kind)))
		}
		o.Adopt(format)
	}
	f.Adopt(o)
}

// nestTools turns this API's flat functions into those of chats.
func (f Fields) nestTools() {
	items, ok := f.List("tools", openai.MaxTools)
	if !ok || len(items) == 0 {
		return
	}
	nested := []byte{'['}
	for i, raw := range items {
		o, ok := f.Sub(fmt.Sprintf("tools[%d]", i), raw)
		if !ok {
			return
		}
		var kind string
		if o.String("type", &kind); kind != "function" {
			o.Fail(jsonread.CodeUnsupported, "type", "this server has no tools of its own; expected function, but got '%s'.", jsonread.Brief([]byte(kind)))
		}
		if f.Adopt(o); f.Err != nil {
			return
		}
		if i > 0 {
			nested = append(nested, ',')
		}
		nested = append(append(append(nested, `{"type":"function","function":`...), raw...), '}')
	}
	f.Put("tools", append(nested, ']'))
}
