package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
)

// encoder writes messages. Its answers have one choice.
type encoder struct {
	api.Choices
	id, model string
	request   string   // the request's id
	applied   *applied // nil: the request asked for no edits
	report    *report.Search

	index int    // of the block under way
	kind  string // of it; empty: none is open
	end   tts.End
}

func newEncoder(c *api.Call, model string, applied *applied, report *report.Search) *encoder {
	return &encoder{id: "msg_" + strings.ReplaceAll(uuid.NewString(), "-", ""), model: model, request: c.ID, applied: applied, report: report}
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
	Scaling      any     `json:"test_time_scaling,omitempty"` // Lutra's own
}

// edited says which edits have changed the prompt.
type edited struct {
	Applied []any `json:"applied_edits"`
}

func (s *encoder) edited() *edited {
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

// stopReason returns why an answer ended.
func stopReason(d *tts.End) (reason, sequence *string) {
	switch {
	case d.Finish == tts.FinishCalls:
		return new("tool_use"), nil
	case d.Finish.Cut():
		return new("max_tokens"), nil
	case d.Stop != "":
		return new("stop_sequence"), &d.Stop
	}
	return new("end_turn"), nil
}

func (s *encoder) Collect(e tts.Event) {
	s.report.Update(e)
	s.Choices.Collect(e)
}

func (s *encoder) Full(p *jsonwrite.Reply, u tts.Usage) {
	c := s.List[0]
	m := s.message(newUsage(u))
	if thought := c.Reasoning(); thought != "" {
		m.Content = append(m.Content, block{Type: "thinking", Thinking: &thought, Signature: new("")})
	}
	if text := c.Text(); text != "" {
		m.Content = append(m.Content, block{Type: "text", Text: &text})
	}
	for _, c := range c.Calls {
		m.Content = append(m.Content, block{Type: "tool_use", ID: c.ID, Name: c.Name, Input: c.Object()})
	}
	m.StopReason, m.StopSequence = stopReason(&c.End)
	m.Context, m.Scaling = s.edited(), s.report.Answer()
	p.Value(m)
}

func (s *encoder) message(u usage) *message {
	return &message{ID: s.id, Type: "message", Role: fields.RoleAssistant, Model: s.model, Content: []block{}, Usage: u}
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
	Scaling any      `json:"test_time_scaling,omitempty"` // of pings and at the end; Lutra's own
}

func named(e event) jsonwrite.Event { return jsonwrite.Event{Name: e.Type, Data: e} }

// delta is the new part of a block.
type delta struct {
	Type     string  `json:"type"`
	Text     *string `json:"text,omitempty"`
	Thinking *string `json:"thinking,omitempty"`
	JSON     *string `json:"partial_json,omitempty"`
}

func (s *encoder) Event(e tts.Event) any {
	if now := s.report.Update(e); now != nil {
		return named(event{Type: "ping", Scaling: now})
	}
	var list jsonwrite.List
	switch w := e.What.(type) {
	case tts.Opening:
		return named(event{Type: "message_start", Message: s.message(usage{Input: len(w.Prompt)})})
	case tts.Reasoning:
		list = s.add(list, block{Type: "thinking", Thinking: new(""), Signature: new("")}, delta{Type: "thinking_delta", Thinking: new(string(w))})
	case tts.Text:
		if w.Text != "" {
			list = s.add(list, block{Type: "text", Text: new("")}, delta{Type: "text_delta", Text: &w.Text})
		}
	case tts.Calls:
		for i := range w {
			c := &w[i]
			if c.Name != "" {
				list = s.close(list)
			}
			b := block{Type: "tool_use", ID: c.ID, Name: c.Name, Input: json.RawMessage("{}")}
			list = s.add(list, b, delta{Type: "input_json_delta", JSON: &c.Arguments})
		}
	case tts.End:
		s.end = w
		list = s.close(list)
	}
	return list
}

// add adds to the block of this kind, which it opens if another is open or none.
func (s *encoder) add(list jsonwrite.List, b block, d delta) jsonwrite.List {
	if s.kind != b.Type {
		list = s.close(list)
		s.kind = b.Type
		list = append(list, named(event{Type: "content_block_start", Index: new(s.index), Block: &b}))
	}
	return append(list, named(event{Type: "content_block_delta", Index: new(s.index), Delta: d}))
}

// close closes the block under way.
func (s *encoder) close(list jsonwrite.List) jsonwrite.List {
	if s.kind == "" {
		return list
	}
	list = append(list, named(event{Type: "content_block_stop", Index: new(s.index)}))
	s.index, s.kind = s.index+1, ""
	return list
}

func (s *encoder) KeepAlive() any { return named(event{Type: "ping"}) }

func (s *encoder) End(u tts.Usage, fault *api.Fault) any {
	if fault != nil {
		return failure(fault, s.request)
	}
	var end struct {
		Reason   *string `json:"stop_reason"`
		Sequence *string `json:"stop_sequence"`
	}
	end.Reason, end.Sequence = stopReason(&s.end)
	spent := newUsage(u)
	return jsonwrite.List{
		named(event{Type: "message_delta", Delta: end, Usage: &spent, Context: s.edited(), Scaling: s.report.Answer()}),
		named(event{Type: "message_stop"}),
	}
}
