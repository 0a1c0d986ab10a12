package responses

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// encoder writes responses, which have one choice. It keeps the output as it comes.
type encoder struct {
	settings *settings
	response response
	report   *report.Search
	number   int             // of the next event
	open     bool            // the last item of the output goes on
	text     strings.Builder // that it has so far
	custom   customInput     // of its arguments
	tokens   textTokens
	end      tts.Finish
	steps    []step
	stored   *owned  // where it is kept; nil: it is not
	replayed []*item // the output that is repeated; nil: it is new
}

// newEncoder writes the answer of a model to a request. A response that is to be kept is
// kept in stored when it ends.
func newEncoder(model string, req *tts.Request, s *settings, stored owned) *encoder {
	w := &encoder{settings: s, response: response{
		ID: "resp_" + uuid.NewString(), Object: "response", CreatedAt: now(), Status: inProgress, Model: model, Output: []*item{},
		Parallel: s.Parallel, Store: s.Store, Temperature: req.Sampling.Temperature, TopP: req.Sampling.TopP, Text: s.Text,
		ToolChoice: s.ToolChoice, Tools: s.Tools, TopLogprobs: req.Sampling.TopLogprobs, Truncation: s.Truncation, Metadata: s.Metadata, User: s.User,
	}}
	if s.Store {
		w.stored = &stored
	}
	r := &w.response
	r.Instructions, r.Previous, r.Reasoning.Effort = jsonwrite.Optional(s.Instructions), jsonwrite.Optional(s.Previous), jsonwrite.Optional(s.Effort)
	if s.MaxTokens > 0 {
		r.MaxTokens = &s.MaxTokens
	}
	if s.MaxToolCalls > 0 {
		r.MaxToolCalls = &s.MaxToolCalls
	}
	return w
}

func (s *encoder) Full(p *jsonwrite.Reply, u tts.Usage) {
	s.complete(u)
	p.Value(&s.response)
}

func (s *encoder) Collect(e tts.Event) {
	s.report.Update(e)
	s.add(nil, e)
}

// complete ends the response, and keeps it.
func (s *encoder) complete(u tts.Usage) {
	r := &s.response
	r.Status, r.Usage, r.CompletedAt = completed, newUsage(u), new(now())
	if s.end.Cut() {
		r.Status, r.Incomplete, r.CompletedAt = cutOff, &incomplete{"max_output_tokens"}, nil
	}
	if found := s.report.Answer(); found != nil {
		r.Scaling, _ = json.Marshal(found) // numbers and texts, which are kept
	}
	s.keep()
}

// keep keeps the response where it finds room.
func (s *encoder) keep() {
	r := &s.response
	r.Store = s.stored != nil && s.stored.put(&record{response: *r, input: s.settings.items, steps: slices.Clip(s.steps), encrypted: s.settings.encrypted})
}

// opening returns the events that open the response.
func (s *encoder) opening() jsonwrite.List {
	return jsonwrite.List{s.event(event{Type: eventCreated, Response: s.snapshot()}), s.event(event{Type: eventInProgress, Response: s.snapshot()})}
}

// snapshot returns the response as it stands, for an event that is written at once.
func (s *encoder) snapshot() *response {
	if s.open {
		s.response.last().write(s.text.String())
	}
	r := s.response
	return &r
}

// event numbers an event.
func (s *encoder) event(e event) jsonwrite.Event {
	e.Number = s.number
	s.number++
	return jsonwrite.Event{Name: e.Type, Data: e}
}

func (s *encoder) Event(e tts.Event) any {
	s.report.Update(e)
	switch e.What.(type) {
	case tts.Opening:
		return s.opening()
	case *tts.Progress:
		return s.KeepAlive()
	}
	return s.add(jsonwrite.List{}, e)
}

// add adds to the output, and the events of that to list.
func (s *encoder) add(list jsonwrite.List, e tts.Event) jsonwrite.List {
	switch w := e.What.(type) {
	case tts.Reasoning:
		s.tokens = textTokens{thought: true}
		list = s.write(list, itemReasoning, string(w), nil)
	case tts.Text:
		if tokens := s.tokens.take(&w); w.Text != "" {
			list = s.write(list, itemMessage, w.Text, tokens)
		}
	case tts.Calls:
		s.tokens.pending = nil
		for i := range w {
			list = s.call(list, &w[i])
		}
	case tts.End:
		s.end = w.Finish
		status := completed
		if w.Finish.Cut() {
			status = cutOff
		}
		list = s.close(list, status)
	}
	return list
}

// begin opens an item, after it has closed the one under way.
func (s *encoder) begin(list jsonwrite.List, it *item) jsonwrite.List {
	list = s.close(list, completed)
	if s.replayed != nil {
		it.ID = s.replayed[len(s.response.Output)].ID
	}
	s.response.Output = append(s.response.Output, it)
	s.open, s.custom = true, customInput{}
	s.text.Reset()
	begun := *it
	return append(list, s.event(event{Type: "response.output_item.added", Index: s.response.place(), Item: &begun}))
}

// write adds text to an item of that type.
func (s *encoder) write(list jsonwrite.List, kind, text string, tokens []report.TokenLogprob) jsonwrite.List {
	if !s.open || s.response.last().Type != kind {
		list = s.begin(list, newItem(kind))
		p := newPart(kind)
		s.response.last().Content = []part{p}
		list = append(list, s.event(event{Type: "response.content_part.added", ItemID: s.response.last().ID, Index: s.response.place(), PartIndex: new(0), Part: &p}))
	}
	s.text.WriteString(text)
	it := s.response.last()
	s.steps = append(s.steps, step{int32(*s.response.place()), int32(len(text)), int32(len(tokens))})
	e := event{Type: "response.reasoning_text.delta", ItemID: it.ID, Index: s.response.place(), PartIndex: new(0), Delta: &text}
	if kind == itemMessage {
		e.Type, e.Logprobs = "response.output_text.delta", tokens
		if tokens == nil {
			e.Logprobs = []report.TokenLogprob{}
		}
		it.Content[0].Logprobs = append(it.Content[0].Logprobs, tokens...)
	}
	return append(list, s.event(e))
}

// call adds to a call.
func (s *encoder) call(list jsonwrite.List, c *toolcall.Call) jsonwrite.List {
	kind := itemCall
	if c.Name != "" && slices.Contains(s.settings.custom, c.Name) || c.Name == "" && s.open && s.response.last().Type == itemCustom {
		kind = itemCustom
	}
	if c.Name != "" {
		namespace, name := "", c.Name
		for _, n := range s.settings.spaced {
			if n.seen == c.Name {
				namespace, name = n.namespace, n.name
			}
		}
		list = s.beginCall(list, kind, c.ID, namespace, name)
	}
	piece := c.Arguments
	if kind == itemCustom {
		piece = s.custom.push(piece)
	}
	return s.writeCall(list, kind, piece)
}

// beginCall opens a call.
func (s *encoder) beginCall(list jsonwrite.List, kind, id, namespace, name string) jsonwrite.List {
	it := newItem(kind)
	it.CallID, it.Namespace, it.Name = id, namespace, name
	list = s.begin(list, it)
	s.steps = append(s.steps, step{item: int32(*s.response.place())})
	return list
}

// writeCall adds to the arguments of the call under way, or to its input.
func (s *encoder) writeCall(list jsonwrite.List, kind, piece string) jsonwrite.List {
	if piece == "" || !s.open || s.response.last().Type != kind {
		return list
	}
	s.text.WriteString(piece)
	s.steps = append(s.steps, step{int32(*s.response.place()), int32(len(piece)), 0})
	e := event{Type: "response.function_call_arguments.delta", ItemID: s.response.last().ID, Index: s.response.place(), Delta: &piece}
	if kind == itemCustom {
		e.Type = "response.custom_tool_call_input.delta"
	}
	return append(list, s.event(e))
}

// close ends the item under way.
func (s *encoder) close(list jsonwrite.List, status string) jsonwrite.List {
	if !s.open {
		return list
	}
	s.open = false
	it, at, text := s.response.last(), s.response.place(), s.text.String()
	it.write(text)
	it.Status = status
	switch it.Type {
	case itemCall:
		list = append(list, s.event(event{Type: "response.function_call_arguments.done", ItemID: it.ID, Index: at, Arguments: &text, Name: it.Name}))
	case itemCustom:
		list = append(list, s.event(event{Type: "response.custom_tool_call_input.done", ItemID: it.ID, Index: at, Input: &text}))
	default:
		p := it.Content[0]
		e := event{Type: "response.reasoning_text.done", ItemID: it.ID, Index: at, PartIndex: new(0), Text: &text}
		if it.Type == itemMessage {
			e.Type, e.Logprobs = "response.output_text.done", p.Logprobs
		} else if s.settings.encrypted {
			it.Encrypted = opaque(text)
		}
		list = append(list, s.event(e), s.event(event{Type: "response.content_part.done", ItemID: it.ID, Index: at, PartIndex: new(0), Part: &p}))
	}
	done := *it
	return append(list, s.event(event{Type: "response.output_item.done", Index: at, Item: &done}))
}

// KeepAlive repeats that the response is in progress, from its first event until its last item is done:
// its end follows at once.
func (s *encoder) KeepAlive() any {
	if s.number == 0 || s.end != "" {
		return nil
	}
	s.steps = append(s.steps, step{item: keptAlive})
	return s.event(event{Type: eventInProgress, Response: s.snapshot()})
}

// End ends the response. One that its client has cancelled has not failed.
func (s *encoder) End(u tts.Usage, f *api.Fault) any {
	switch {
	case f == nil:
		s.complete(u)
		return s.ended()
	case f == ErrCancelled:
		s.response.Status = cancelled
		return s.abandoned(u)
	}
	code := faultServer
	switch f.Status {
	case http.StatusTooManyRequests:
		code = faultRate
	case http.StatusBadRequest:
		code = faultPrompt
	}
	s.response.Status, s.response.Error = failed, &fault{code, f.Message}
	return s.abandoned(u)
}

// abandoned returns the event that ends a response in the midst of an item.
func (s *encoder) abandoned(u tts.Usage) any {
	s.response.Usage = newUsage(u)
	if s.open {
		s.open = false
		s.response.last().write(s.text.String())
		s.response.last().Status = cutOff
	}
	s.keep()
	return s.ended()
}

// ended returns the last event of a response.
func (s *encoder) ended() jsonwrite.Event {
	kind := eventIncomplete
	switch s.response.Status {
	case completed:
		kind = eventCompleted
	case failed:
		kind = eventFailed
	}
	return s.event(event{Type: kind, Response: s.snapshot()})
}

// mostSummary bounds the tokens of a summary, together with a quarter of the context.
const mostSummary = 1024

// compaction writes the answer of a model that was asked for a summary: an item that
// stands in the place of a conversation. It is not streamed.
type compaction struct {
	*encoder
	kept []*item // that the summary does not replace
}

// compacted is a conversation that is shorter.
type compacted struct {
	ID        string  `json:"id"`
	Object    string  `json:"object"`
	CreatedAt int64   `json:"created_at"`
	Output    []*item `json:"output"`
	Usage     *usage  `json:"usage"`
}

// readCompact reads POST /v1/responses/compact for a model: the request is for a summary of
// the conversation, the oldest of which is left out if it does not fit.
func readCompact(f *jsonread.Fields, req *tts.Request, m *tts.Model, stored owned) (*compaction, *settings) {
	s := newSettings()
	s.Store = false
	f.Text("instructions", &s.Instructions)
	c := readConversation(f, s, stored)
	c.say(fields.RoleUser, compactRequest)
	s.instruct(&req.Prompt, c.messages)
	req.Prompt.Truncate = true
	req.N, req.Sampling.TopP, req.Sampling.MaxTokens = 1, 1, min(mostSummary, max(m.Context/4, 1))
	f.Ignore("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "service_tier")
	w := &compaction{encoder: newEncoder(m.Name, req, s, stored)}
	for _, it := range s.items {
		if it.Type == itemMessage && (it.Role == fields.RoleSystem || it.Role == fields.RoleDeveloper) {
			w.kept = append(w.kept, it)
		}
	}
	return w, s
}

// Full writes the items that go on in the conversation's place.
func (c *compaction) Full(p *jsonwrite.Reply, u tts.Usage) {
	summary := ""
	for _, it := range c.response.Output {
		if it.Type == itemMessage {
			summary += it.written()
		}
	}
	p.Value(compacted{
		ID: "cmpr_" + uuid.NewString(), Object: "response.compaction", CreatedAt: c.response.CreatedAt, Usage: newUsage(u),
		Output: append(c.kept[:len(c.kept):len(c.kept)], &item{ID: newID(itemCompaction), Type: itemCompaction, Encrypted: opaque(summary)}),
	})
}
