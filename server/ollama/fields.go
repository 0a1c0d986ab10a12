package ollama

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
	vectors "github.com/lutra-lm/lutra/tts/embed"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Bounds on one request, besides those in jsonread and fields.
const (
	maxMessages = 2048
	maxCalls    = 1 << 20 // bytes of a request's tools, and of its messages' calls
)

// custom has Ollama's defaults, of api.DefaultOptions in its api/types.go; since August 2026
// (https://github.com/ollama/ollama/pull/17679) it penalises no repetition. A model's own go
// before them there too, field by field.
func custom() sampling.Config {
	return sampling.Config{
		Temperature: new(float32(0.8)), TopK: new(40), TopP: new(float32(0.9)), MinP: new(float32(0)), TypicalP: new(float32(1)),
		RepetitionPenalty: new(float32(1)), RepeatLastN: new(64),
	}
}

// reader reads a request's fields.
type reader struct{ *jsonread.Fields }

// chat reads POST /api/chat for a model. The calling is nil where no tool may be
// called. named is what the request says of its sampling.
func (f reader) chat(req *tts.Request, m *tts.Model) (calling *tts.Calling, named sampling.Config) {
	p := &req.Prompt
	ids, calls := []string(nil), 0 // ids of calls that have no result yet
	for _, o := range f.Each("messages", maxMessages) {
		p.Messages = append(p.Messages, reader{o}.message(&ids, &calls))
	}
	if calls > maxCalls {
		f.Fail(jsonread.CodeValue, "messages", "their tool calls have %d bytes, at most %d are allowed.", calls, maxCalls)
	}
	if n := len(p.Messages); n > 0 && p.Messages[n-1].Role == fields.RoleAssistant && p.Messages[n-1].ToolCalls == nil {
		p.Ending = tts.ContinueFinalMessage
	}
	f.think(req, m)
	named = f.options(req, m)
	f.logprobs(req)
	o := fields.Reader{Fields: f.Fields}
	calling = o.ToolChoice(req, m)
	f.format(req, m)
	f.bookkeeping()
	return calling, named
}

// generate reads POST /api/generate for a model, and returns what it says of its sampling.
func (f reader) generate(req *tts.Request, m *tts.Model) (named sampling.Config) {
	var text, system string
	raw := false
	f.Text("prompt", &text)
	f.Text("system", &system)
	f.Bool("raw", &raw)
	req.Prompt.Before = f.IDs("context", m.Context, m.Vocab)
	if raw {
		req.Prompt.Text, req.Prompt.NoBOS = text, true
		if system != "" || len(req.Prompt.Before) > 0 {
			f.Fail(jsonread.CodeValue, "raw", "a raw prompt goes with neither 'system' nor 'context'.")
		}
	} else {
		if system != "" {
			req.Prompt.Messages = append(req.Prompt.Messages, template.Message{Role: fields.RoleSystem, Content: system})
		}
		if text != "" {
			req.Prompt.Messages = append(req.Prompt.Messages, template.Message{Role: fields.RoleUser, Content: text})
		}
	}
	f.think(req, m)
	named = f.options(req, m)
	f.logprobs(req)
	f.format(req, m)
	f.Refuse("suffix", "template", "images")
	f.bookkeeping()
	return named
}

// logprobs reads which log-probabilities the answer lists.
func (f reader) logprobs(req *tts.Request) {
	p := &req.Sampling
	f.Bool("logprobs", &p.Logprobs)
	f.Int("top_logprobs", &p.TopLogprobs, 0, fields.MaxTopLogprobs)
	if p.TopLogprobs > 0 && !p.Logprobs {
		f.Fail(jsonread.CodeValue, "top_logprobs", "it is only allowed when 'logprobs' is true.")
	}
	req.MaxLogprobs = fields.MaxLogprobs
}

// format reads what the answer is held to: "json", or a schema.
func (f reader) format(req *tts.Request, m *tts.Model) {
	raw, ok := f.Take("format")
	if !ok || string(raw) == `""` {
		return
	}
	text := string(raw)
	if word, ok := jsonread.Text(raw); ok && word == "json" {
		text = schema.Object
	} else if jsonread.Kind(raw) != "an object" {
		f.WrongType("format", `"json" or a schema`, raw)
		return
	}
	fields.Reader{Fields: f.Fields}.HoldTo(req, m, "format", constrain.Schema, text)
}

// bookkeeping refuses fields that would change the answer.
func (f reader) bookkeeping() {
	f.Ignore("truncate", "shift")
	f.Refuse("width", "height", "steps")
}

// streaming reads stream, which is the default.
func (f reader) streaming() bool {
	stream := true
	f.Bool("stream", &stream)
	return stream
}

// think reads whether and how much the model thinks. One that does not is not asked to, as in Ollama.
func (f reader) think(req *tts.Request, m *tts.Model) {
	raw, ok := f.Take("think")
	if !ok {
		return
	}
	vars := map[string]any{}
	if effort, ok := jsonread.Text(raw); ok && slices.Contains([]string{"low", "medium", "high"}, effort) {
		vars["reasoning_effort"], vars["enable_thinking"] = effort, true
	} else if on := string(raw); on == "true" || on == "false" {
		vars["enable_thinking"] = on == "true"
	} else {
		f.WrongType("think", "true, false, low, medium or high", raw)
	}
	if vars["enable_thinking"] == true && !m.Thinks() && !m.ThinkingSwitches() {
		f.Fail(jsonread.CodeUnsupported, "think", "the model '%s' does not support thinking.", m.Name)
	}
	req.Prompt.Extra = vars
}

// options reads how tokens are sampled, and returns what the request names of that.
func (f reader) options(req *tts.Request, m *tts.Model) (named sampling.Config) {
	o, ok := f.Object("options")
	if !ok {
		o, _ = jsonread.Parse([]byte("{}"))
	}
	named = fields.Reader{Fields: o}.Sampling(req, m, 1, custom())
	most := -1
	if o.Int("num_predict", &most, -2, math.MaxInt32); most > 0 {
		req.Sampling.MaxTokens = most
	}
	// Of the machine, which is configured once for all requests.
	o.Ignore("num_ctx", "num_keep", "num_batch", "num_gpu", "main_gpu", "low_vram", "use_mmap", "use_mlock", "num_thread",
		"numa", "f16_kv", "vocab_only", "penalize_newline", "tfs_z", "mirostat_eta", "mirostat_tau", "draft_num_predict")
	for _, name := range slices.Sorted(maps.Keys(fields.Unsupported)) { // options that nobody knows are logged once, as other fields are
		if raw, given := o.Take(name); given && fields.Unsupported[name].Asks(raw) {
			o.Fail(jsonread.CodeUnsupported, name, "this server does not support it.")
		}
	}
	if ok {
		f.Adopt(o)
	}
	return named
}

// message reads a message. Calls have no ids here, but templates may want some. ids has the ids of calls without
// a result yet, in their order.
func (f reader) message(ids *[]string, calls *int) template.Message {
	var m template.Message
	f.OneOf("role", jsonread.CodeValue, &m.Role, fields.RoleSystem, fields.RoleUser, fields.RoleAssistant, fields.RoleTool)
	var text string
	f.Text("content", &text)
	m.Content = text
	f.Text("thinking", &m.ReasoningContent)
	f.Refuse("images")
	f.String("tool_name", &m.Name)
	f.String("tool_call_id", &m.ToolCallID)
	list, _ := f.List("tool_calls", fields.MaxTools)
	if m.Role == fields.RoleTool && m.ToolCallID == "" && len(*ids) > 0 {
		m.ToolCallID, *ids = (*ids)[0], (*ids)[1:]
	}
	if len(list) == 0 || m.Role != fields.RoleAssistant {
		return m
	}
	*ids = nil
	var written []any
	for i, raw := range list {
		var c struct {
			ID       string
			Function struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		at := fmt.Sprintf("tool_calls[%d].function", i)
		if json.Unmarshal(raw, &c) != nil || !toolcall.ValidName(c.Function.Name) || jsonread.Kind(c.Function.Arguments) != "an object" {
			f.Fail(jsonread.CodeValue, at, "expected a name and an object of arguments.")
			return m
		}
		if c.ID == "" {
			c.ID = fmt.Sprintf("call%05d", *calls%100000)
		}
		*ids = append(*ids, c.ID)
		entry := fields.Written(c.ID, c.Function.Name, string(c.Function.Arguments))
		*calls += len(entry)
		written = append(written, entry)
	}
	if m.ToolCalls = written; text == "" {
		m.Content = nil
	}
	return m
}

// embed reads POST /api/embed for a model whose vectors have width elements.
func (f reader) embed(width int) *vectors.Request {
	r := &vectors.Request{Truncate: true}
	if raw, ok := f.Take("input"); !ok {
		f.Fail(jsonread.CodeMissing, "input", "an input is required.")
	} else if text, ok := jsonread.Text(raw); ok {
		if text != "" { // models are loaded so
			r.Texts = []tts.Prompt{{Text: text}}
		}
	} else if jsonread.Kind(raw) != "a list" {
		f.WrongType("input", "a string or a list of strings", raw)
	} else {
		items, _ := f.Items("input", raw, fields.MaxInputs)
		for i, raw := range items {
			text, ok := jsonread.Text(raw)
			if !ok {
				f.WrongType(fmt.Sprintf("input[%d]", i), "a string", raw)
			}
			r.Texts = append(r.Texts, tts.Prompt{Text: text})
		}
	}
	f.Bool("truncate", &r.Truncate)
	f.Int("dimensions", &r.Dimensions, 0, width)
	f.embedOptions(r)
	return r
}

// embedOptions reads how much of a text is read; other options say how tokens are sampled.
func (f reader) embedOptions(r *vectors.Request) {
	if o, ok := f.Object("options"); ok {
		o.Int("num_ctx", &r.Most, 0, math.MaxInt32)
		if f.Err == nil {
			f.Err = o.Err
		}
	}
}

// embedPrompt reads POST /api/embeddings.
func (f reader) embedPrompt() *vectors.Request {
	r, text := &vectors.Request{Truncate: true}, ""
	if f.Text("prompt", &text); text != "" { // models are loaded so
		r.Texts = []tts.Prompt{{Text: text}}
	}
	f.embedOptions(r)
	return r
}
