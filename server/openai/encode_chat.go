package openai

import (
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/receipt"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
)

// encoder has what the encoders of chats and completions share.
type encoder struct {
	heading
	choices api.Choices      // of an answer that is not streamed
	usage   bool             // the stream ends with the usage
	listed  *listed          // of tokens; nil: nothing
	clock   *clock           // of the answer's timings; nil: it has none
	report  *report.Search   // of the searches; nil: none
	builder *receipt.Builder // of the receipt with which the answer ends; nil: it has none
}

func (e *encoder) Collect(event tts.Event) {
	e.listed.note(event)
	e.report.Take(event)
	e.clock.note(event)
	e.choices.Collect(event)
}

// chunkUsage returns the usage of a chunk that is not the last.
func (e *encoder) chunkUsage() optionalUsage {
	if e.usage {
		return nullUsage
	}
	return nil
}

// ended returns the end of a stream: last, unless there is nothing in it, and OpenAI's mark.
func (e *encoder) ended(fault *api.Fault, last func(u optionalUsage, t *report.Timings, r *receipt.Receipt) any, u tts.Usage) any {
	var list jsonwrite.List
	if fault != nil {
		list = append(list, jsonwrite.Event{Data: api.Failure(fault)})
	} else if receipt, timings := e.builder.Receipt(), e.clock.timings(u); e.usage || receipt != nil || timings != nil {
		var spent optionalUsage
		if e.usage {
			spent = newUsage(u, e.report)
		}
		list = append(list, jsonwrite.Event{Data: last(spent, timings, receipt)})
	}
	return append(list, jsonwrite.Event{Data: jsonwrite.Done})
}

// chatEncoder writes chat completions.
type chatEncoder struct {
	encoder
	n        int // choices
	logprobs bool
	calls    bool                       // the answer may be calls
	dropped  int                        // messages that the model does not read
	plain    map[int]jsonwrite.Template // of each choice: its chunk with text alone
}

func (c *chatEncoder) response(object string, usage optionalUsage, choices ...chatChoice) *chatResponse {
	r := &chatResponse{heading: c.heading, Choices: choices, Usage: usage}
	r.Object = object
	return r
}

// chunk returns one of one choice.
func (c *chatEncoder) chunk(ch chatChoice) *chatResponse {
	return c.response("chat.completion.chunk", c.chunkUsage(), ch)
}

func (c *chatEncoder) Collect(e tts.Event) {
	if w, ok := e.What.(tts.Opening); ok {
		c.dropped = w.Dropped
	}
	c.encoder.Collect(e)
}

func (c *chatEncoder) Full(p *jsonwrite.Reply, u tts.Usage) {
	r := c.response("chat.completion", newUsage(u, c.report))
	r.Choices, r.Scaling, r.Truncation, r.Receipt = []chatChoice{}, c.report.Summary(), report.NewTruncation(c.dropped), c.builder.Receipt()
	r.Timings = c.clock.timings(u)
	p.Around(r, `"choices":[]`, func() {
		p.Raw(`"choices":`)
		p.List(len(c.choices.List), func(i int) { c.choice(p, i, c.choices.List[i]) })
		c.listed.writePrompt(p, 0)
	})
}

// choice writes a whole choice.
func (c *chatEncoder) choice(p *jsonwrite.Reply, index int, ch *api.Choice) {
	m := &chatMessage{Role: fields.RoleAssistant, Content: new(ch.Text()), Reasoning: ch.Reasoning(), Calls: newToolCalls(ch.Calls, false)}
	if len(m.Calls) > 0 && *m.Content == "" {
		m.Content = nil
	}
	whole := chatChoice{Index: index, FinishReason: report.FinishReason(ch.Finish), Message: m, Scaling: c.report.Choice(index)}
	p.Around(whole, `"logprobs":null`, func() {
		defer c.listed.writeTokens(p, index)
		if !c.logprobs {
			p.Raw(`"logprobs":null`)
			return
		}
		p.Raw(`"logprobs":{"content":`)
		tokens := tts.Said(ch.Tokens)
		p.List(len(tokens), func(i int) { p.Value(report.NewTokenLogprob(&tokens[i])) })
		p.Raw(`,"refusal":null}`)
	})
}

func (c *chatEncoder) Event(e tts.Event) any {
	if c.report.Take(e) {
		return c.KeepAlive()
	}
	c.clock.note(e)
	if c.listed.note(e) {
		return nil
	}
	ch := chatChoice{Index: e.Choice, Delta: &chatDelta{}}
	switch w := e.What.(type) {
	case tts.Opening:
		c.dropped = w.Dropped
		return c.open()
	case tts.Text:
		if !c.logprobs && c.listed == nil {
			return c.text(e.Choice).With(w.Text)
		}
		ch.Delta.Content = &w.Text
		if c.logprobs {
			ch.Logprobs = newChatLogprobs(w.Tokens)
		}
		if w.Text == "" && (ch.Logprobs == nil || len(ch.Logprobs.Content) == 0) {
			return nil // there is only the token that ended the turn, or one whose text is to come
		}
	case tts.Reasoning:
		ch.Delta.Reasoning = string(w)
	case tts.Calls:
		ch.Delta.Calls = newToolCalls(w, true)
	case tts.End:
		ch.FinishReason, ch.Scaling = report.FinishReason(w.Finish), c.report.Choice(e.Choice)
		_, ch.TokenIDs = c.listed.chunk(e.Choice)
		r := c.chunk(ch)
		r.Scaling = c.report.Of(e.Choice)
		return r
	default:
		return nil
	}
	_, ch.TokenIDs = c.listed.chunk(e.Choice)
	return c.chunk(ch)
}

// open returns the chunks that open the choices.
func (c *chatEncoder) open() any {
	list := make(jsonwrite.List, c.n)
	for i := range list {
		opening := &chatDelta{Role: fields.RoleAssistant, Content: new("")}
		if c.calls {
			opening.Content = noText
		}
		r := c.chunk(chatChoice{Index: i, Delta: opening})
		prompt, _ := c.listed.chunk(i)
		if i == 0 {
			r.Truncation, r.PromptTokenIDs = report.NewTruncation(c.dropped), prompt
		}
		list[i].Data = r
	}
	return list
}

// text returns a choice's chunk with text alone.
func (c *chatEncoder) text(choice int) jsonwrite.Template {
	f, ok := c.plain[choice]
	if !ok {
		if c.plain == nil {
			c.plain = map[int]jsonwrite.Template{}
		}
		r := c.chunk(chatChoice{Index: choice, Delta: &chatDelta{Content: new(jsonwrite.Hole)}})
		r.Fingerprint = ""
		f = jsonwrite.NewTemplate(r)
		c.plain[choice] = f
	}
	return f
}

func (c *chatEncoder) KeepAlive() any {
	r := c.chunk(chatChoice{Delta: &chatDelta{Content: new("")}})
	r.Scaling = c.report.Progress()
	return r
}

func (c *chatEncoder) End(u tts.Usage, fault *api.Fault) any {
	return c.ended(fault, func(u optionalUsage, timings *report.Timings, receipt *receipt.Receipt) any {
		r := c.response("chat.completion.chunk", u)
		r.Choices, r.Timings, r.Receipt = []chatChoice{}, timings, receipt // an empty list, not null
		return r
	}, u)
}
