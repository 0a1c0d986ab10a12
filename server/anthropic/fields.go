package anthropic

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Bounds on one request, beside those in jsonread.
const (
	maxMessages = 2048
	maxBlocks   = 256 // of a message
	maxTools    = 128
	maxStops    = 16
	maxStopLen  = 1024    // bytes
	maxCalls    = 1 << 20 // bytes of a request's tools, and of its messages' calls
)

// Fields are a request's fields.
type Fields struct{ *jsonread.Fields }

// Message reads POST /v1/messages for a model. The calling is nil where no tool may
// be called.
func (f Fields) Message(req *tts.Request, m *tts.Model) *tts.Calling {
	f.Prompt(req)
	if !f.Int("max_tokens", &req.Sampling.MaxTokens, 1, math.MaxInt32) && f.Err == nil {
		f.Fail(jsonread.CodeMissing, "max_tokens", "it is required.")
	}
	f.sampling(req)
	c := f.toolChoice(req, m)
	f.output(req, m)
	f.bookkeeping()
	return c
}

// Prompt reads what the model goes on from.
func (f Fields) Prompt(req *tts.Request) {
	p := &req.Prompt
	if text, given := f.text("system"); given {
		p.Messages = append(p.Messages, template.Message{Role: roleSystem, Content: text})
	}
	items, _ := f.List("messages", maxMessages)
	if len(items) == 0 {
		f.Fail(jsonread.CodeMissing, "messages", "a list of at least one message is required.")
	}
	calls := 0
	for i, raw := range items {
		o, ok := f.Sub(fmt.Sprintf("messages[%d]", i), raw)
		if !ok {
			return
		}
		for _, m := range (Fields{o}).message() {
			if list, ok := m.ToolCalls.([]any); ok {
				for _, c := range list {
					calls += len(c.(json.RawMessage))
				}
			}
			p.Messages = append(p.Messages, m)
		}
		if f.Adopt(o); f.Err != nil {
			return
		}
	}
	if calls > maxCalls {
		f.Fail(jsonread.CodeValue, "messages", "their tool calls have %d bytes, at most %d are allowed.", calls, maxCalls)
	}
	f.follow(p.Messages)
	if n := len(p.Messages); f.Err == nil && p.Messages[n-1].Role == roleAssistant {
		if p.Messages[n-1].ToolCalls != nil {
			f.Fail(jsonread.CodeValue, "messages", "the last one uses tools, so their results are missing.")
			return
		}
		p.Ending = tts.EndOpen
	}
	f.thinking(req)
	f.tools(p)
}

// thinking reads whether and how long the model thinks.
func (f Fields) thinking(req *tts.Request) {
	o, ok := f.Object("thinking")
	if !ok {
		return
	}
	var kind string
	o.String("type", &kind)
	switch kind {
	case "enabled":
		if !o.Int("budget_tokens", &req.MaxThinking, 1, math.MaxInt32) && o.Err == nil {
			o.Fail(jsonread.CodeMissing, "budget_tokens", "it is required.")
		}
	case "adaptive", "disabled":
	default:
		o.Fail(jsonread.CodeValue, "type", "expected enabled, adaptive or disabled, but got '%s'.", jsonread.Brief([]byte(kind)))
	}
	o.Ignore("display")
	req.Prompt.Extra = map[string]any{"enable_thinking": kind != "disabled"}
	f.Adopt(o)
}

// sampling reads how tokens are sampled and where the answer ends.
func (f Fields) sampling(req *tts.Request) {
	p := &req.Sampling
	p.Temperature, p.TopP, p.Seed = 1, 1, rand.Uint64()
	f.Float32("temperature", &p.Temperature, 0, 1)
	if f.Float32("top_p", &p.TopP, 0, 1); p.TopP == 0 {
		p.TopP = math.SmallestNonzeroFloat32
	}
	f.Int("top_k", &p.TopK, 0, math.MaxInt32)
	items, _ := f.List("stop_sequences", maxStops)
	for i, raw := range items {
		s, ok := jsonread.Text(raw)
		if !ok || s == "" || len(s) > maxStopLen {
			f.Fail(jsonread.CodeValue, fmt.Sprintf("stop_sequences[%d]", i), "expected 1 to %d bytes of text.", maxStopLen)
		}
		req.Stop = append(req.Stop, s)
	}
	req.N = 1
}

// bookkeeping reads fields that change nothing, and refuses those that would.
func (f Fields) bookkeeping() {
	f.Ignore("metadata", "service_tier", "cache_control", "inference_geo")
	for _, name := range []string{"container", "context_management", "mcp_servers"} {
		if raw, ok := f.Take(name); ok && string(raw) != "null" && string(raw) != "[]" && string(raw) != "{}" {
			f.Fail(jsonread.CodeUnsupported, name, "this server does not support it.")
		}
	}
}

// Streaming reads stream.
func (f Fields) Streaming() (stream bool) {
	f.Bool("stream", &stream)
	return stream
}

// tools reads the tools and hands them to the template as OpenAI has them.
func (f Fields) tools(p *tts.Prompt) {
	items, _ := f.List("tools", maxTools)
	size := 0
	for i, raw := range items {
		o, ok := f.Sub(fmt.Sprintf("tools[%d]", i), raw)
		if !ok {
			return
		}
		kind, strict := "custom", false
		var tool struct {
			Type     string `json:"type"`
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description,omitempty"`
				Parameters  json.RawMessage `json:"parameters"`
				Strict      bool            `json:"strict,omitempty"`
			} `json:"function"`
		}
		tool.Type = "function"
		fn := &tool.Function
		if o.String("type", &kind); kind != "custom" && kind != "" {
			o.Fail(jsonread.CodeUnsupported, "type", "this server has no tools of its own; expected custom, but got '%s'.", jsonread.Brief([]byte(kind)))
		}
		o.String("name", &fn.Name)
		o.Text("description", &fn.Description)
		o.Bool("strict", &strict)
		fn.Strict = strict
		if schema, ok := o.Take("input_schema"); ok && jsonread.Kind(schema) == "an object" {
			fn.Parameters = schema
		} else {
			o.Fail(jsonread.CodeMissing, "input_schema", "a JSON schema is required.")
		}
		if !toolcall.ValidName(fn.Name) {
			o.Fail(jsonread.CodeValue, "name", "a name has 1 to 64 letters, digits, dots, underscores and dashes.")
		}
		o.Ignore("cache_control", "eager_input_streaming", "defer_loading", "allowed_callers", "input_examples")
		if f.Adopt(o); f.Err != nil {
			return
		}
		written, err := json.Marshal(tool)
		if err != nil {
			f.Fail(jsonread.CodeValue, "tools", "%v.", err)
			return
		}
		if size += len(written); size > maxCalls {
			f.Fail(jsonread.CodeValue, "tools", "they have more than %d bytes.", maxCalls)
			return
		}
		p.Tools = append(p.Tools, json.RawMessage(written))
	}
}

// toolChoice reads which tools may or must be called.
func (f Fields) toolChoice(req *tts.Request, m *tts.Model) *tts.Calling {
	kind, name, one := "auto", "", false
	if o, ok := f.Object("tool_choice"); ok {
		o.String("type", &kind)
		o.String("name", &name)
		o.Bool("disable_parallel_tool_use", &one)
		if !slices.Contains([]string{"auto", "any", "tool", "none"}, kind) {
			o.Fail(jsonread.CodeValue, "type", "expected auto, any, tool or none, but got '%s'.", jsonread.Brief([]byte(kind)))
		}
		f.Adopt(o)
	}
	tools, fault := toolcall.Definitions(req.Prompt.Tools)
	if fault != nil {
		f.Fail(jsonread.CodeValue, fmt.Sprintf("tools[%d]", fault.Index), "%s.", fault.Message)
	}
	if f.Err != nil || kind == "none" || len(tools) == 0 && kind == "auto" {
		return nil
	}
	c := &tts.Calling{Format: m.ToolFormat(), Tools: tools, One: one}
	switch {
	case len(tools) == 0:
		f.Fail(jsonread.CodeValue, "tool_choice", "it is only allowed when 'tools' are given.")
	case kind != "auto" && req.Prompt.Ending != tts.EndHeader:
		f.Fail(jsonread.CodeValue, "tool_choice", "a message that continues another cannot be made a call.")
	case kind == "tool" && !slices.ContainsFunc(tools, func(t toolcall.Tool) bool { return t.Name == name }):
		f.Fail(jsonread.CodeValue, "tool_choice.name", "there is no tool of the name '%s'.", jsonread.Brief([]byte(name)))
	case kind == "any" && len(tools) == 1:
		name = tools[0].Name
	}
	if f.Err != nil {
		return nil
	}
	if err := c.Hold(f.Context(), req, m, kind != "auto", name); err != nil {
		openai.FailFormat(f.Fields, jsonread.CodeUnsupported, "tools", "strict: ", err)
	}
	return c
}
