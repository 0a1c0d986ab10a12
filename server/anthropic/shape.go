package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
)

// Shape writes messages. Its answers have one choice.
type Shape struct {
	id, model string
	prompt    int      // tokens
	applied   *Applied // nil: the request asked for no edits

	index int    // of the block under way
	kind  string // of it; empty: none is open
	end   tts.Delta
}

// NewShape writes the answer of a model to a prompt that edits were applied to.
func NewShape(model string, applied *Applied) *Shape {
	return &Shape{id: "msg_" + strings.ReplaceAll(uuid.NewString(), "-", ""), model: model, applied: applied}
}

// message is an answer, or what its stream begins with.
type message struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []block `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        usage   `json:"usage"`
	Context      *edited `json:"context_management,omitempty"`
}

// edited says which edits have changed the prompt.
type edited struct {
	Applied []any `json:"applied_edits"`
}

func (s *Shape) edited() *edited {
	if s.applied == nil {
		return nil
	}
	return &edited{s.applied.List}
}

// block is a part of a message.
type block struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

type usage struct {
	Input         int `json:"input_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
	Output        int `json:"output_tokens"`
}

func newUsage(u tts.Usage) usage {
	return usage{Input: u.Prompt - u.Cached, CacheRead: u.Cached, Output: u.Completion}
}

// stopReason is why an answer ended.
func stopReason(d *tts.Delta) (reason, sequence *string) {
	switch {
	case d.Finish == tts.FinishCalls:
		return new("tool_use"), nil
	case d.Finish == tts.FinishLength:
		return new("max_tokens"), nil
	case d.Stop != "":
		return new("stop_sequence"), &d.Stop
	}
	return new("end_turn"), nil
}

// Open notes the size of the prompt.
func (s *Shape) Open(first tts.Delta) { s.prompt = first.Usage.Prompt }

// Whole writes an answer.
func (s *Shape) Whole(p *jsonwrite.Reply, choices []tts.Delta, u tts.Usage) {
	d := &choices[0]
	m := s.message(newUsage(u))
	if d.Reasoning != "" {
		m.Content = append(m.Content, block{Type: "thinking", Thinking: &d.Reasoning, Signature: new("")})
	}
	if d.Text != "" {
		m.Content = append(m.Content, block{Type: "text", Text: &d.Text})
	}
	for _, c := range d.Calls {
		input := json.RawMessage(c.Arguments)
		if !json.Valid(input) { // it was cut off
			input = json.RawMessage("{}")
		}
		m.Content = append(m.Content, block{Type: "tool_use", ID: c.ID, Name: c.Name, Input: input})
	}
	m.StopReason, m.StopSequence = stopReason(d)
	m.Context = s.edited()
	p.Value(m)
}

func (s *Shape) message(u usage) *message {
	return &message{ID: s.id, Type: "message", Role: roleAssistant, Model: s.model, Content: []block{}, Usage: u}
}

// event is an event's data, whose type is its name too.
type event struct {
	Type    string   `json:"type"`
	Message *message `json:"message,omitempty"`
	Index   *int     `json:"index,omitempty"`
	Block   *block   `json:"content_block,omitempty"`
	Delta   any      `json:"delta,omitempty"`
	Usage   *usage   `json:"usage,omitempty"`
	Context *edited  `json:"context_management,omitempty"`
}

func named(e event) jsonwrite.Event { return jsonwrite.Event{Name: e.Type, Data: e} }

// Begin is the event that opens the message.
func (s *Shape) Begin(int) any {
	return named(event{Type: "message_start", Message: s.message(usage{Input: s.prompt})})
}

// delta is what a block gains.
type delta struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitempty"`
	Thinking *string `json:"thinking,omitempty"`
	JSON     *string `json:"partial_json,omitempty"`
}

// Chunk is the events for what an answer gains.
func (s *Shape) Chunk(d tts.Delta) any {
	var list jsonwrite.List
	if d.Reasoning != "" {
		list = s.add(list, block{Type: "thinking", Thinking: new(""), Signature: new("")}, delta{Type: "thinking_delta", Thinking: &d.Reasoning})
	}
	if d.Text != "" {
		list = s.add(list, block{Type: "text", Text: new("")}, delta{Type: "text_delta", Text: &d.Text})
	}
	for i := range d.Calls {
		c := &d.Calls[i]
		if c.Name != "" {
			list = s.close(list)
		}
		b := block{Type: "tool_use", ID: c.ID, Name: c.Name, Input: json.RawMessage("{}")}
		list = s.add(list, b, delta{Type: "input_json_delta", JSON: &c.Arguments})
	}
	if d.Finish != "" {
		s.end = d
		list = s.close(list)
	}
	if list == nil {
		return nil
	}
	return list
}

// add adds to the block of this kind, which it opens if another is open or none.
func (s *Shape) add(list jsonwrite.List, b block, d delta) jsonwrite.List {
	if s.kind != b.Type {
		list = s.close(list)
		s.kind = b.Type
		list = append(list, named(event{Type: "content_block_start", Index: new(s.index), Block: &b}))
	}
	return append(list, named(event{Type: "content_block_delta", Index: new(s.index), Delta: d}))
}

// close closes the block under way.
func (s *Shape) close(list jsonwrite.List) jsonwrite.List {
	if s.kind == "" {
		return list
	}
	list = append(list, named(event{Type: "content_block_stop", Index: new(s.index)}))
	s.index, s.kind = s.index+1, ""
	return list
}

// KeepAlive is a ping.
func (s *Shape) KeepAlive() any { return named(event{Type: "ping"}) }

// End is the events that end the message.
func (s *Shape) End(u tts.Usage) any {
	var end struct {
		Reason   *string `json:"stop_reason"`
		Sequence *string `json:"stop_sequence"`
	}
	end.Reason, end.Sequence = stopReason(&s.end)
	spent := newUsage(u)
	return jsonwrite.List{
		named(event{Type: "message_delta", Delta: end, Usage: &spent, Context: s.edited()}),
		named(event{Type: "message_stop"}),
	}
}

// Done is nothing: the last event says that it is.
func (s *Shape) Done() any { return nil }

// Failure is an error as the API's clients expect it, whole or as an event. id is that
// of the request. Where param is a thread, which the client's runner of tools asks for by
// itself, details tell it to go on without.
func Failure(status int, text, param, id string) jsonwrite.Event {
	type details struct {
		Code        string   `json:"error_code"`
		Unsupported []string `json:"unsupported"`
	}
	type fault struct {
		Type    string   `json:"type"`
		Message string   `json:"message"`
		Param   string   `json:"param,omitempty"`
		Details *details `json:"details,omitempty"`
	}
	failure := fault{Type: errorType(status), Message: text, Param: param}
	if param == fieldThread {
		failure.Details = &details{"thread_unsupported_request", []string{fieldThread}}
	}
	return jsonwrite.Event{Name: "error", Data: struct {
		Type  string `json:"type"`
		Error fault  `json:"error"`
		ID    string `json:"request_id"`
	}{"error", failure, id}}
}

// errorType is the API's word for a status.
func errorType(status int) string {
	switch status {
	case 400, 408, 409, 415, 422:
		return "invalid_request_error"
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404, 405:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 503:
		return "overloaded_error"
	case 504:
		return "timeout_error"
	}
	return "api_error"
}

// Lines says that answers are streamed as events.
func (s *Shape) Lines() bool { return false }
