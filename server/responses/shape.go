package responses

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Shape writes responses, which have one choice.
type Shape struct {
	response response
	number   int  // of the next event
	open     bool // the last item of the output goes on
	end      tts.Delta
	said     []template.Message
	keep     func(id string, said []template.Message, response json.RawMessage) // nil: it is not stored
}

// NewShape writes the answer of a model to a request. keep is told of it when it is
// complete.
func NewShape(model string, req *tts.Request, s *Settings, keep func(id string, said []template.Message, response json.RawMessage)) *Shape {
	w := &Shape{said: req.Prompt.Messages, keep: keep, response: response{
		ID: "resp_" + uuid.NewString(), Object: "response", CreatedAt: now(), Status: inProgress, Model: model, Output: []item{},
		Parallel: s.Parallel, Store: s.Store, Temperature: req.Sampling.Temperature, TopP: req.Sampling.TopP, Text: s.Text,
		ToolChoice: s.ToolChoice, Tools: s.Tools, Truncation: s.Truncation, Metadata: s.Metadata,
	}}
	if s.Instructions != "" { // they hold for this response alone
		w.said = w.said[1:]
	}
	r := &w.response
	r.Instructions, r.Previous, r.Reasoning.Effort, r.User = jsonwrite.Optional(s.Instructions), jsonwrite.Optional(s.Previous), jsonwrite.Optional(s.Effort), jsonwrite.Optional(s.User)
	if s.MaxTokens > 0 {
		r.MaxTokens = &s.MaxTokens
	}
	return w
}

// Open takes nothing from a run's first delta.
func (s *Shape) Open(tts.Delta) {}

// Whole writes an answer.
func (s *Shape) Whole(p *jsonwrite.Reply, choices []tts.Delta, u tts.Usage) {
	s.add(nil, &choices[0])
	p.Raw(string(s.complete(u)))
}

// complete ends the response and hands it to the store.
func (s *Shape) complete(u tts.Usage) json.RawMessage {
	r := &s.response
	r.Status, r.Usage, r.CompletedAt = completed, newUsage(u), new(now())
	if s.end.Finish == tts.FinishLength {
		r.Status, r.Incomplete, r.CompletedAt = cutOff, &incomplete{"max_output_tokens"}, nil
	}
	raw, _ := json.Marshal(r) // plain fields, and JSON that was read
	if s.keep != nil {
		s.keep(r.ID, append(s.said[:len(s.said):len(s.said)], s.message()), raw)
	}
	return raw
}

// message is the answer as a template reads it.
func (s *Shape) message() template.Message {
	m := template.Message{Role: roleAssistant}
	text := ""
	var calls []any
	for i := range s.response.Output {
		switch it := &s.response.Output[i]; it.Type {
		case itemMessage:
			text += it.Content[0].Text
		case itemReasoning:
			m.ReasoningContent += it.Content[0].Text
		case itemCall:
			calls = append(calls, newCall(it.CallID, it.Name, *it.Arguments))
		}
	}
	if m.Content = text; calls != nil {
		if m.ToolCalls = calls; text == "" {
			m.Content = nil
		}
	}
	return m
}

// Begin is the events that open the response.
func (s *Shape) Begin(int) any {
	return jsonwrite.List{s.event(event{Type: "response.created", Response: s.snapshot()}), s.event(event{Type: "response.in_progress", Response: s.snapshot()})}
}

// snapshot is the response as it stands.
func (s *Shape) snapshot() *response {
	r := s.response
	return &r
}

// event numbers an event.
func (s *Shape) event(e event) jsonwrite.Event {
	e.Number = s.number
	s.number++
	return jsonwrite.Event{Name: e.Type, Data: e}
}

// Chunk is the events for what an answer gains.
func (s *Shape) Chunk(d tts.Delta) any {
	list := s.add(jsonwrite.List{}, &d)
	if len(list) == 0 {
		return nil
	}
	return list
}

// add adds to the output, and the events of that to list.
func (s *Shape) add(list jsonwrite.List, d *tts.Delta) jsonwrite.List {
	if d.Reasoning != "" {
		list = s.write(list, itemReasoning, d.Reasoning)
	}
	if d.Text != "" {
		list = s.write(list, itemMessage, d.Text)
	}
	for i := range d.Calls {
		list = s.call(list, &d.Calls[i])
	}
	if d.Finish != "" {
		s.end = *d
		status := completed
		if d.Finish == tts.FinishLength {
			status = cutOff
		}
		list = s.close(list, status)
	}
	return list
}

// last is the item under way, and its place.
func (s *Shape) last() (*item, *int) {
	n := len(s.response.Output) - 1
	return &s.response.Output[n], &n
}

// begin opens an item, after it has closed the one under way.
func (s *Shape) begin(list jsonwrite.List, it item) jsonwrite.List {
	list = s.close(list, completed)
	s.response.Output = append(s.response.Output, it)
	s.open = true
	_, at := s.last()
	return append(list, s.event(event{Type: "response.output_item.added", Index: at, Item: &it}))
}

// write adds text to an item of that type.
func (s *Shape) write(list jsonwrite.List, kind, text string) jsonwrite.List {
	if !s.open || s.response.Output[len(s.response.Output)-1].Type != kind {
		list = s.begin(list, newItem(kind))
		it, at := s.last()
		p := newPart(kind)
		it.Content = []part{p}
		list = append(list, s.event(event{Type: "response.content_part.added", ItemID: it.ID, Index: at, PartIndex: new(0), Part: &p}))
	}
	it, at := s.last()
	it.Content[0].Text += text
	e := event{Type: "response.reasoning_text.delta", ItemID: it.ID, Index: at, PartIndex: new(0), Delta: &text}
	if kind == itemMessage {
		e.Type, e.Logprobs = "response.output_text.delta", []any{}
	}
	return append(list, s.event(e))
}

// call adds to a call.
func (s *Shape) call(list jsonwrite.List, c *toolcall.Call) jsonwrite.List {
	if c.Name != "" {
		it := newItem(itemCall)
		it.CallID, it.Name = c.ID, c.Name
		list = s.begin(list, it)
	}
	it, at := s.last()
	if c.Arguments == "" || it.Type != itemCall {
		return list
	}
	it.Arguments = new(*it.Arguments + c.Arguments)
	return append(list, s.event(event{Type: "response.function_call_arguments.delta", ItemID: it.ID, Index: at, Delta: &c.Arguments}))
}

// close ends the item under way.
func (s *Shape) close(list jsonwrite.List, status string) jsonwrite.List {
	if !s.open {
		return list
	}
	s.open = false
	it, at := s.last()
	it.Status = status
	if it.Type == itemCall {
		list = append(list, s.event(event{Type: "response.function_call_arguments.done", ItemID: it.ID, Index: at, Arguments: it.Arguments, Name: it.Name}))
	} else {
		p := it.Content[0]
		e := event{Type: "response.reasoning_text.done", ItemID: it.ID, Index: at, PartIndex: new(0), Text: &p.Text}
		if it.Type == itemMessage {
			e.Type, e.Logprobs = "response.output_text.done", []any{}
		}
		list = append(list, s.event(e), s.event(event{Type: "response.content_part.done", ItemID: it.ID, Index: at, PartIndex: new(0), Part: &p}))
	}
	done := *it
	return append(list, s.event(event{Type: "response.output_item.done", Index: at, Item: &done}))
}

// KeepAlive repeats that the response is in progress.
func (s *Shape) KeepAlive() any {
	return s.event(event{Type: "response.in_progress", Response: s.snapshot()})
}

// End is the event with the whole response.
func (s *Shape) End(u tts.Usage) any {
	s.complete(u)
	return s.event(event{Type: "response." + s.response.Status, Response: s.snapshot()})
}

// Done is nothing: the last event says that it is.
func (s *Shape) Done() any { return nil }

// Lines says that answers are streamed as events.
func (s *Shape) Lines() bool { return false }
