package responses

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
)

// readCreate reads POST /v1/responses for a model. stored has what the request may follow
// and refer to. The calling is nil where no tool may be called. The last result is what the
// request names of its sampling.
func readCreate(f *jsonread.Fields, req *tts.Request, m *tts.Model, stored owned) (*tts.Calling, *settings, sampling.Config) {
	s := newSettings()
	readRepeated(f, s)
	readPrompt(f, req, s, stored)
	if f.Int("max_output_tokens", &req.Sampling.MaxTokens, 1, math.MaxInt32) {
		s.MaxTokens = req.Sampling.MaxTokens
	}
	f.Int("max_tool_calls", &s.MaxToolCalls, 1, math.MaxInt32) // of tools of the server's own: it has none
	if raw, ok := f.Take("n"); ok && string(raw) != "null" {
		f.Fail(jsonread.CodeUnsupported, "n", "a request has one response. Candidates for it are asked for with 'test_time_scaling'.")
	}
	o := fields.Reader{Fields: f}
	named := o.Sampling(req, m, 1, sampling.Config{})
	readInclude(f, req, s)
	readTools(f, m, s)
	readToolChoice(f, s)
	c := o.ToolChoice(req, m)
	readFormat(f, req, m, s)
	f.Refuse("background", "conversation", "prompt", "context_management", "moderation")
	f.Ignore("service_tier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "safety_identifier", "stream_options", "client_metadata")
	return c, s, named
}

// readCount reads POST /v1/responses/input_tokens for a model.
func readCount(f *jsonread.Fields, req *tts.Request, m *tts.Model, stored owned) *settings {
	s := newSettings()
	readRepeated(f, s)
	readPrompt(f, req, s, stored)
	readTools(f, m, s)
	readToolChoice(f, s)
	fields.Reader{Fields: f}.ToolChoice(req, m)
	readFormat(f, &tts.Request{}, m, s) // the prompt does not show it
	f.Refuse("conversation", "personality")
	return s
}

// readPrompt reads what the model goes on from.
func readPrompt(f *jsonread.Fields, req *tts.Request, s *settings, stored owned) {
	c := readConversation(f, s, stored)
	s.instruct(&req.Prompt, c.messages)
	req.Prompt.Truncate = s.Truncation == "auto"
	readReasoning(f, req, s)
}

// readConversation reads what has been said: in the responses that this one follows, and in
// the request.
func readConversation(f *jsonread.Fields, s *settings, stored owned) (c conversation) {
	var before []*item
	if f.String("previous_response_id", &s.Previous); s.Previous != "" {
		if r := stored.find(s.Previous); r != nil {
			before = slices.Collect(r.all)
		} else {
			f.Fail(jsonread.CodeValue, "previous_response_id", "there is no response '%s': it was not stored, or is no longer kept.", jsonread.Brief(s.Previous))
		}
	}
	for _, it := range before {
		s.Earlier += it.size()
	}
	s.items, c = readInput(f, before, stored)
	return c
}

// instruct gives a prompt its messages, after the instructions.
func (s *settings) instruct(p *tts.Prompt, messages []template.Message) {
	if p.Messages = messages; s.Instructions != "" {
		p.Messages = slices.Insert(messages, 0, template.Message{Role: fields.RoleSystem, Content: s.Instructions})
	}
}

// readRepeated reads fields that the response repeats.
func readRepeated(f *jsonread.Fields, s *settings) {
	f.Text("instructions", &s.Instructions)
	f.Bool("store", &s.Store)
	f.String("user", &s.User)
	if raw := f.Raw("metadata"); raw != nil && string(raw) != "null" {
		s.Metadata = bytes.Clone(raw)
	}
	if raw := f.Raw("parallel_tool_calls"); string(raw) == "false" {
		s.Parallel = false
	}
	f.OneOf("truncation", jsonread.CodeValue, &s.Truncation, "auto", "disabled")
}

// What a response may include besides its text.
const (
	includeEncrypted = "reasoning.encrypted_content"
	includeLogprobs  = "message.output_text.logprobs"
)

// elsewhere are words of include for tools and inputs that no response here has.
var elsewhere = []string{
	"code_interpreter_call.outputs", "computer_call_output.output.image_url", "file_search_call.results",
	"message.input_image.image_url", "web_search_call.action.sources", "web_search_call.results",
}

// readInclude reads what the response is to have besides its text.
func readInclude(f *jsonread.Fields, req *tts.Request, s *settings) {
	items, _ := f.List("include", fields.MaxIncludes)
	for i, raw := range items {
		switch name, _ := jsonread.Text(raw); {
		case name == includeEncrypted:
			s.encrypted = true
		case name == includeLogprobs:
			req.Sampling.Logprobs = true
		case !slices.Contains(elsewhere, name):
			f.Fail(jsonread.CodeValue, fmt.Sprintf("include[%d]", i), "expected %s or %s, but got %s.", includeEncrypted, includeLogprobs, jsonread.Brief(raw))
		}
	}
	top := &req.Sampling.TopLogprobs
	if f.Int("top_logprobs", top, 0, fields.MaxTopLogprobs); *top > 0 {
		req.Sampling.Logprobs = true
	}
	req.MaxLogprobs = fields.MaxLogprobs
}

// readReasoning reads whether the model thinks.
func readReasoning(f *jsonread.Fields, req *tts.Request, s *settings) {
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
	if !slices.Contains(fields.Efforts, s.Effort) {
		f.Fail(jsonread.CodeValue, "reasoning.effort", "'%s' is none.", jsonread.Brief(s.Effort))
	}
	req.Prompt.Extra = map[string]any{"reasoning_effort": s.Effort, "enable_thinking": s.Effort != "none"}
}

// readFormat reads what the answer is held to.
func readFormat(f *jsonread.Fields, req *tts.Request, m *tts.Model, s *settings) {
	o, ok := f.Object("text")
	if !ok {
		return
	}
	echo := textSettings{Format: &textFormat{Type: "text"}}
	if o.String("verbosity", &echo.Verbosity); !slices.Contains([]string{"", "low", "medium", "high"}, echo.Verbosity) {
		o.Fail(jsonread.CodeValue, "verbosity", "expected low, medium or high, but got '%s'.", jsonread.Brief(echo.Verbosity))
	}
	o.In("format", func(format *jsonread.Fields) {
		readFormatOf(format, echo.Format)
	})
	f.Adopt(o)
	s.Text = echo
	hold := fields.Reader{Fields: f}
	switch echo.Format.Type {
	case "json_object":
		hold.HoldTo(req, m, "text.format", constrain.Schema, schema.Object)
	case "json_schema":
		hold.HoldTo(req, m, "text.format", constrain.Schema, string(echo.Format.Schema))
	}
}

// readFormatOf reads a format.
func readFormatOf(f *jsonread.Fields, t *textFormat) {
	f.String("type", &t.Type)
	f.String("name", &t.Name)
	f.Text("description", &t.Description)
	if f.Has("strict") { // a schema is held to in any case
		t.Strict = new(bool)
		f.Bool("strict", t.Strict)
	}
	raw, given := f.Take("schema")
	t.Schema = bytes.Clone(raw)
	switch {
	case t.Type == "text", t.Type == "json_object":
		*t = textFormat{Type: t.Type}
	case t.Type != "json_schema":
		f.Fail(jsonread.CodeUnsupported, "type", "expected text, json_object or json_schema, but got '%s'.", jsonread.Brief(t.Type))
	case !given:
		f.Fail(jsonread.CodeMissing, "schema", "a schema is required.")
	}
	if t.Type == "json_schema" && t.Name == "" {
		t.Name = "schema" // clients require one
	}
}
