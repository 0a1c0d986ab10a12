package openai

import (
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/receipt"
	"github.com/lutra-lm/lutra/tts"
)

// chatShape writes chat completions.
type chatShape struct {
	heading
	logprobs bool
	usage    bool                       // the stream ends with the usage
	calls    bool                       // the answer may be calls
	report   *SearchReport              // of the searches; nil: none
	dropped  int                        // messages that the model does not read
	plain    map[int]jsonwrite.Template // of each choice: its chunk with text alone
	receipt  func() *receipt.Receipt    // of the complete answer; nil: it has none
}

// NewChatShape writes the answer of a model, with log-probabilities or not, which may be
// calls. usage asks for a chunk with the usage at the end of a stream. The answer
// ends with what receipt returns, if that is not nil.
func NewChatShape(model, fingerprint string, logprobs, usage, calls bool, report *SearchReport, receipt func() *receipt.Receipt) *chatShape {
	return &chatShape{heading: newHeading("chatcmpl-", model, fingerprint), logprobs: logprobs, usage: usage, calls: calls, report: report, receipt: receipt}
}

// Open notes how many messages the model does not read.
func (c *chatShape) Open(first tts.Delta) { c.dropped = first.Dropped }

func (c *chatShape) response(object string, usage optionalUsage, choices ...chatChoice) *chatResponse {
	r := &chatResponse{heading: c.heading, Choices: choices, Usage: usage}
	r.Object = object
	return r
}

func (c *chatShape) Whole(p *jsonwrite.Reply, choices []tts.Delta, u tts.Usage) {
	r := c.response("chat.completion", c.report.usage(u))
	r.Choices, r.Scaling, r.Truncation, r.Receipt = []chatChoice{}, c.report.summary(), NewTruncation(c.dropped), c.receipt()
	p.Around(r, `"choices":[]`, func() {
		p.Raw(`"choices":`)
		p.List(len(choices), func(i int) { c.choice(p, i, &choices[i]) })
	})
}

// choice writes a whole choice.
func (c *chatShape) choice(p *jsonwrite.Reply, index int, ch *tts.Delta) {
	m := &chatMessage{Role: roleAssistant, Content: &ch.Text, Reasoning: ch.Reasoning, Calls: newToolCalls(ch.Calls, false)}
	if len(m.Calls) > 0 && ch.Text == "" {
		m.Content = nil
	}
	whole := chatChoice{Index: index, FinishReason: finishReason(ch.Finish), Message: m, Scaling: c.report.choice(index)}
	if !c.logprobs {
		p.Value(whole)
		return
	}
	p.Around(whole, `"logprobs":null`, func() {
		p.Raw(`"logprobs":{"content":`)
		tokens := messageTokens(ch.Tokens)
		p.List(len(tokens), func(i int) { p.Value(NewTokenLogprob(&tokens[i])) })
		p.Raw(`,"refusal":null}`)
	})
}

// delta is a chunk of one choice.
func (c *chatShape) delta(ch chatChoice) *chatResponse {
	var u optionalUsage
	if c.usage {
		u = nullUsage
	}
	return c.response("chat.completion.chunk", u, ch)
}

func (c *chatShape) Begin(index int) any {
	opening := &chatDelta{Role: roleAssistant, Content: new("")}
	if c.calls {
		opening.Content = noText
	}
	r := c.delta(chatChoice{Index: index, Delta: opening})
	if index == 0 {
		r.Truncation = NewTruncation(c.dropped)
	}
	return r
}

func (c *chatShape) Chunk(d tts.Delta) any {
	if d.Reasoning == "" && d.Finish == "" && d.Calls == nil && !c.logprobs {
		return c.text(d.Choice).With(d.Text)
	}
	ch := chatChoice{Index: d.Choice, Delta: &chatDelta{}, FinishReason: finishReason(d.Finish)}
	switch {
	case d.Reasoning != "":
		ch.Delta.Reasoning = d.Reasoning
	case d.Calls != nil:
		ch.Delta.Calls = newToolCalls(d.Calls, true)
	case d.Finish == "":
		ch.Delta.Content, ch.Logprobs = &d.Text, newChatLogprobs(d.Tokens)
	}
	if ch.Logprobs != nil && d.Text == "" && len(ch.Logprobs.Content) == 0 {
		return nil // there is only the token that ended the turn
	}
	r := c.delta(ch)
	if d.Finish != "" {
		r.Choices[0].Scaling = c.report.choice(d.Choice)
		r.Scaling = c.report.search(d.Choice)
	}
	return r
}

// text is a choice's chunk with text alone.
func (c *chatShape) text(choice int) jsonwrite.Template {
	f, ok := c.plain[choice]
	if !ok {
		if c.plain == nil {
			c.plain = map[int]jsonwrite.Template{}
		}
		r := c.delta(chatChoice{Index: choice, Delta: &chatDelta{Content: new(jsonwrite.Hole)}})
		r.Fingerprint = ""
		f = jsonwrite.NewTemplate(r)
		c.plain[choice] = f
	}
	return f
}

func (c *chatShape) KeepAlive() any {
	r := c.delta(chatChoice{Delta: &chatDelta{Content: new("")}})
	r.Scaling = c.report.progress()
	return r
}

func (c *chatShape) End(u tts.Usage) any {
	receipt := c.receipt()
	if !c.usage && receipt == nil {
		return nil
	}
	r := c.response("chat.completion.chunk", nil)
	if c.usage {
		r.Usage = c.report.usage(u)
	}
	r.Choices, r.Receipt = []chatChoice{}, receipt // an empty list, not null
	return r
}

// Done is OpenAI's end mark.
func (c *chatShape) Done() any { return jsonwrite.Done }

// Lines says that answers are streamed as events.
func (c *chatShape) Lines() bool { return false }
