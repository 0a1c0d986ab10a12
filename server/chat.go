package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	openai "github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts"
)

// chat is POST /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) error {
	f, err := s.readFields(w, r)
	if err != nil {
		return err
	}
	g, err := s.chatRequest(f, r.Header)
	if err != nil {
		return err
	}
	s.trace(r, g)
	return s.generate(w, r, g)
}

// chatRequest checks a chat request.
func (s *Server) chatRequest(f *fields, header http.Header) (*generation, error) {
	g, err := s.beginGenerator(f)
	if err != nil {
		return nil, err
	}
	req := &tts.Request{Prompt: f.conversation()}
	tempered := f.has("temperature")
	f.sampling(req, g.model.Vocab, s.opt.MaxChoices)
	f.tokenLimit(req, 1, "max_completion_tokens", "max_tokens")
	f.bool("logprobs", &req.Sampling.Logprobs)
	if f.int("top_logprobs", &req.Sampling.TopLogprobs, 0, maxTopLogprobs) && !req.Sampling.Logprobs {
		f.fail(codeValue, "top_logprobs", "it is only allowed when 'logprobs' is true.")
	}
	req.MaxLogprobs = maxLogprobs
	g.thoughts = f.reasoningFormat(s.opt.ReasoningFormat)
	f.responseFormat()
	f.toolChoice()
	f.refuse("functions", "function_call", "audio", "prediction", "web_search_options")
	f.modalities()
	f.ignore("parallel_tool_calls", "reasoning_effort", "verbosity")
	s.scale(f, header, g, req, tempered)
	f.bookkeeping()
	shape := &chatShape{id: "chatcmpl-" + uuid.NewString(), created: time.Now().Unix(), model: g.name, logprobs: req.Sampling.Logprobs}
	g.stream, shape.usage = f.streaming()
	shape.searched = g.tale
	g.requests, g.shape = []*tts.Request{req}, shape
	g.tale.of(1, req.N)
	return g, s.finish(f)
}

// begin reads the model of a request.
func (s *Server) begin(f *fields) (*generation, error) {
	g := &generation{}
	f.string("model", &g.name)
	if f.err != nil {
		return nil, f.err
	}
	var err error
	if g.model, g.preset, err = s.model(g.name); err != nil {
		return nil, err
	}
	if g.name == "" {
		g.name = g.model.Name
	}
	return g, nil
}

// beginGenerator is begin for requests that want text written.
func (s *Server) beginGenerator(f *fields) (*generation, error) {
	g, err := s.begin(f)
	if err == nil && g.model.reward != nil {
		return nil, invalid(codeValue, "model", "The model '%s' judges answers and writes none. Send them to /v1/rewards.", brief([]byte(g.name)))
	}
	return g, err
}

// conversation reads messages and what else shapes the rendered prompt.
func (f *fields) conversation() tts.Prompt {
	var p tts.Prompt
	items, ok := f.list("messages")
	if len(items) == 0 && (ok || f.err == nil) {
		f.fail(codeMissing, "messages", "a list of at least one message is required.")
	}
	for i, raw := range items {
		if m, ok := f.sub(fmt.Sprintf("messages[%d]", i), raw); ok {
			p.Messages = append(p.Messages, m.message())
			f.adopt(m)
		}
	}
	header := true
	f.bool("add_generation_prompt", &header)
	p.Continue = !header
	if raw, ok := f.take("chat_template_kwargs"); ok && json.Unmarshal(raw, &p.Extra) != nil {
		f.wrongType("chat_template_kwargs", "an object", raw)
	}
	return p
}

// message reads one message of a conversation.
func (f *fields) message() template.Message {
	var m template.Message
	f.string("role", &m.Role)
	switch m.Role {
	case openai.ChatMessageRoleDeveloper:
		m.Role = openai.ChatMessageRoleSystem // its new name, which templates do not know
	case openai.ChatMessageRoleSystem, openai.ChatMessageRoleUser, openai.ChatMessageRoleAssistant, openai.ChatMessageRoleTool:
	case "":
		f.fail(codeMissing, "role", "every message needs a role.")
	default:
		f.fail(codeValue, "role", "expected one of system, developer, user, assistant and tool, but got '%s'.", brief([]byte(m.Role)))
	}
	if text, given := f.content(); given {
		m.Content = text
	} else if m.Role != openai.ChatMessageRoleAssistant {
		f.fail(codeMissing, "content", "a message of role %s needs a content.", m.Role)
	}
	f.string("name", &m.Name)
	f.string("reasoning_content", &m.ReasoningContent)
	f.string("tool_call_id", &m.ToolCallID)
	f.refuse("tool_calls", "function_call", "audio")
	f.ignore("refusal", "annotations")
	return m
}

// content reads a message's content: a string, or a list of text parts.
func (f *fields) content() (text string, given bool) {
	raw, ok := f.take("content")
	if !ok {
		return "", false
	}
	if json.Unmarshal(raw, &text) == nil {
		return text, true
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		f.wrongType("content", "a string or a list of content parts", raw)
		return "", true
	}
	var b strings.Builder
	for i, raw := range items {
		part, ok := f.sub(fmt.Sprintf("content[%d]", i), raw)
		if !ok {
			return "", true
		}
		var kind, text string
		part.string("type", &kind)
		part.string("text", &text)
		if kind != "text" {
			part.fail(codeUnsupported, "type", "this server reads parts of type text only, but got '%s'.", brief([]byte(kind)))
		}
		b.WriteString(text)
		f.adopt(part)
	}
	return b.String(), true
}

// responseFormat accepts plain text, which is all there is.
func (f *fields) responseFormat() {
	o, ok := f.object("response_format")
	if !ok {
		return
	}
	var kind string
	o.string("type", &kind)
	if kind != "text" {
		o.fail(codeUnsupported, "type", "this server answers with type text only, but got '%s'.", brief([]byte(kind)))
	}
	f.adopt(o)
}

// reasoningFormat reads where thoughts go: true is apart from the answer.
func (f *fields) reasoningFormat(format string) bool {
	if f.string("reasoning_format", &format); format != ReasoningAuto && format != ReasoningNone {
		f.fail(codeValue, "reasoning_format", "expected auto or none, but got '%s'.", brief([]byte(format)))
	}
	return format == ReasoningAuto
}

// toolChoice accepts what leaves the model without tools.
func (f *fields) toolChoice() {
	f.refuse("tools")
	raw, ok := f.take("tool_choice")
	if !ok {
		return
	}
	var choice string
	if json.Unmarshal(raw, &choice) != nil || choice != "none" && choice != "auto" {
		f.fail(codeUnsupported, "tool_choice", "this server does not support tools.")
	}
}

// modalities accepts text.
func (f *fields) modalities() {
	raw, ok := f.take("modalities")
	if !ok {
		return
	}
	var kinds []string
	if json.Unmarshal(raw, &kinds) != nil || len(kinds) != 1 || kinds[0] != "text" {
		f.fail(codeUnsupported, "modalities", `this server supports ["text"] only.`)
	}
}

// bookkeeping checks fields that clients keep for themselves.
func (f *fields) bookkeeping() {
	var s string
	f.string("user", &s)
	f.metadata()
	f.ignore("store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention")
}

// chatShape writes chat completions.
type chatShape struct {
	id       string
	created  int64
	model    string
	logprobs bool
	usage    bool             // the stream ends with the usage
	searched *tale            // nil: there is no search to tell of
	plain    map[int]fragment // of each choice: its chunk of nothing but text
}

func (c *chatShape) response(object string, usage optionalUsage, choices ...chatChoice) *chatResponse {
	return &chatResponse{ID: c.id, Object: object, Created: c.created, Model: c.model, Choices: choices, Usage: usage}
}

func (c *chatShape) whole(choices []choice, u tts.Usage) any {
	out := make([]chatChoice, len(choices))
	for i, ch := range choices {
		out[i] = chatChoice{Index: i, FinishReason: finishReason(ch.finish),
			Message: &chatMessage{Role: openai.ChatMessageRoleAssistant, Content: string(ch.text), Reasoning: string(ch.reasoning)}, Scaling: c.searched.choice(i)}
		if c.logprobs {
			out[i].Logprobs = newChatLogprobs(ch.tokens)
		}
	}
	r := c.response("chat.completion", c.searched.usage(u), out...)
	r.Scaling = c.searched.summary()
	return r
}

// delta is a chunk of one choice.
func (c *chatShape) delta(ch chatChoice) *chatResponse {
	var u optionalUsage
	if c.usage {
		u = nullUsage
	}
	return c.response("chat.completion.chunk", u, ch)
}

func (c *chatShape) begin(index int) any {
	return c.delta(chatChoice{Index: index, Delta: &chatDelta{Role: openai.ChatMessageRoleAssistant, Content: new("")}})
}

func (c *chatShape) chunk(d tts.Delta) any {
	if d.Reasoning == "" && d.Finish == "" && !c.logprobs {
		return c.text(d.Choice).with(d.Text)
	}
	ch := chatChoice{Index: d.Choice, Delta: &chatDelta{}, FinishReason: finishReason(d.Finish)}
	switch {
	case d.Reasoning != "":
		ch.Delta.Reasoning = d.Reasoning
	case d.Finish == "":
		ch.Delta.Content, ch.Logprobs = &d.Text, newChatLogprobs(d.Tokens)
	}
	if d.Reasoning == "" && d.Finish == "" && d.Text == "" && len(ch.Logprobs.Content) == 0 {
		return nil // nothing but the token that ended the turn
	}
	r := c.delta(ch)
	if d.Finish != "" {
		r.Choices[0].Scaling = c.searched.choice(d.Choice)
		r.Scaling = c.searched.search(d.Choice)
	}
	return r
}

// text is a choice's chunk of nothing but text.
func (c *chatShape) text(choice int) fragment {
	f, ok := c.plain[choice]
	if !ok {
		if c.plain == nil {
			c.plain = map[int]fragment{}
		}
		f = newFragment(c.delta(chatChoice{Index: choice, Delta: &chatDelta{Content: new(hole)}}))
		c.plain[choice] = f
	}
	return f
}

func (c *chatShape) alive() any {
	r := c.delta(chatChoice{Delta: &chatDelta{Content: new("")}})
	r.Scaling = c.searched.progress()
	return r
}

func (c *chatShape) end(u tts.Usage) any {
	if !c.usage {
		return nil
	}
	r := c.response("chat.completion.chunk", c.searched.usage(u))
	r.Choices = []chatChoice{} // a list, though an empty one
	return r
}
