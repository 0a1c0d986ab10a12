package anthropic

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
)

// readMessage reads POST /v1/messages for a model. The calling is nil where no tool may
// be called, the edits where the request asks for none. The last result is what the request
// names of its sampling.
func readMessage(f *jsonread.Fields, req *tts.Request, m *tts.Model) (*tts.Calling, *edits, sampling.Config) {
	tools, edits := readPrompt(f, req, m)
	if !f.Int("max_tokens", &req.Sampling.MaxTokens, 1, math.MaxInt32) && f.Err == nil {
		f.Fail(jsonread.CodeMissing, "max_tokens", "it is required.")
	}
	named := readSampling(f, req, m)
	c := readToolChoice(f, req, m, tools)
	readOutput(f, req, m)
	readBookkeeping(f)
	return c, edits, named
}

// readPrompt reads what the model goes on from, the tools that it learns of, and how the
// conversation is to be edited.
func readPrompt(f *jsonread.Fields, req *tts.Request, m *tts.Model) ([]*tool, *edits) {
	p := &req.Prompt
	c := conversation{tools: readTools(f), laterSystem: m.Template != nil && m.Template.ReadsLaterSystem()}
	p.Tools = definitions(c.tools, func(t *tool) bool { return !t.deferred })
	if text := readSystem(f); text != "" {
		c.say(fields.RoleSystem, text)
	}
	n := 0
	for _, o := range f.Each("messages", maxMessages) {
		c.message(o)
		n++
	}
	if n == 0 {
		f.Fail(jsonread.CodeMissing, "messages", "a list of at least one message is required.")
	}
	if f.Err != nil {
		return nil, nil
	}
	if c.bytes > maxCalls {
		f.Fail(jsonread.CodeValue, "messages", "their tool calls and definitions have %d bytes, at most %d are allowed.", c.bytes, maxCalls)
	}
	p.Messages = c.messages()
	checkResults(f, p.Messages)
	if n := len(p.Messages); f.Err == nil && p.Messages[n-1].Role == fields.RoleAssistant {
		if p.Messages[n-1].ToolCalls != nil {
			f.Fail(jsonread.CodeValue, "messages", "the last one uses tools, so their results are missing.")
			return nil, nil
		}
		p.Ending = tts.ContinueFinalMessage
	}
	readThinking(f, req)
	return c.tools, readEdits(f)
}

// readThinking reads whether and how long the model thinks.
func readThinking(f *jsonread.Fields, req *tts.Request) {
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
		o.Fail(jsonread.CodeValue, "type", "expected enabled, adaptive or disabled, but got '%s'.", jsonread.Brief(kind))
	}
	o.Ignore("display", "block_binding")
	req.Prompt.Extra = map[string]any{"enable_thinking": kind != "disabled"}
	f.Adopt(o)
}

// readSampling reads how tokens are sampled and where the answer ends. It returns the fields of
// sampling that the request names.
func readSampling(f *jsonread.Fields, req *tts.Request, m *tts.Model) (named sampling.Config) {
	for i := range sampling.Fields {
		row := &sampling.Fields[i]
		n, x := 0, float32(0)
		switch {
		case row.Anthropic == 0: // an unknown field there
		case row.Whole() && f.Int(row.Name, &n, 0, int(row.Anthropic)):
			row.Put(&named, float64(n))
		case !row.Whole() && f.Float32(row.Name, &x, 0, row.Anthropic):
			row.Put(&named, float64(x))
		}
	}
	named.Or(m.Defaults(sampling.Config{})).Apply(&req.Sampling)
	req.Sampling.Seed = rand.Uint64()
	items, _ := f.List("stop_sequences", maxStops)
	for i, raw := range items {
		s, ok := jsonread.Text(raw)
		if !ok || s == "" || len(s) > maxStopLen {
			f.Fail(jsonread.CodeValue, fmt.Sprintf("stop_sequences[%d]", i), "expected 1 to %d bytes of text.", maxStopLen)
		}
		req.Stop = append(req.Stop, s)
	}
	req.N = 1
	return named
}

// readBookkeeping reads fields that change nothing, and refuses those that would.
func readBookkeeping(f *jsonread.Fields) {
	if raw, ok := f.Take("n"); ok && string(raw) != "null" {
		f.Fail(jsonread.CodeUnsupported, "n", "an answer is one message. Candidates for it are asked for with 'test_time_scaling'.")
	}
	f.Ignore("metadata", "service_tier", "cache_control", "inference_geo", "speed", "diagnostics", "safeguards")
	for _, name := range []string{"container", "mcp_servers", "compaction", fieldThread} {
		if raw, ok := f.Take(name); ok && string(raw) != "null" && string(raw) != "[]" && string(raw) != "{}" {
			f.Fail(jsonread.CodeUnsupported, name, "this server does not support it.")
		}
	}
}

// efforts are the values of effort.
var efforts = []string{"low", "medium", "high", "xhigh", "max"}

// readOutput reads what an answer is held to and how much the model makes of it:
// output_config, or output_format, as its format was called before.
func readOutput(f *jsonread.Fields, req *tts.Request, m *tts.Model) {
	readFormat(f, "output_format", req, m)
	o, ok := f.Object("output_config")
	if !ok {
		return
	}
	effort := ""
	if o.String("effort", &effort); effort != "" {
		if !slices.Contains(efforts, effort) {
			o.Fail(jsonread.CodeValue, "effort", "expected one of %s, but got '%s'.", strings.Join(efforts, ", "), jsonread.Brief(effort))
		}
		vars := maps.Clone(req.Prompt.Extra)
		if vars == nil {
			vars = map[string]any{}
		}
		vars["reasoning_effort"] = effort
		req.Prompt.Extra = vars
	}
	readFormat(o, "format", req, m)
	f.Adopt(o)
}

// readFormat reads a schema that an answer is held to.
func readFormat(f *jsonread.Fields, field string, req *tts.Request, m *tts.Model) {
	o, ok := f.Object(field)
	if !ok {
		return
	}
	kind := ""
	o.OneOf("type", jsonread.CodeUnsupported, &kind, "json_schema")
	schema, given := o.Take("schema")
	if !given {
		o.Fail(jsonread.CodeMissing, "schema", "a schema is required.")
	}
	if f.Adopt(o); f.Err == nil {
		fields.Reader{Fields: f}.HoldTo(req, m, field, constrain.Schema, string(schema))
	}
}
