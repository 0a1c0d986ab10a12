package openai

import (
	"unicode/utf8"

	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/receipt"
	"github.com/lutra-lm/lutra/tts"
)

// textShape writes text completions.
type textShape struct {
	heading
	columns Columns
	usage   bool                    // the stream ends with the usage
	offsets []int                   // of each choice's next token in its text
	report  *SearchReport           // of the searches; nil: none
	receipt func() *receipt.Receipt // of the complete answer; nil: it has none
}

// Columns says what an answer lists of its tokens beside their text.
type Columns struct {
	Logprobs bool // with log-probabilities
	Tokens   bool // their ids, and beside log-probabilities how certain the model was
}

// NewTextShape writes the answer of a model in so many choices. usage asks for a chunk
// with the usage at the end of a stream. The answer ends with what receipt returns, if
// that is not nil.
func NewTextShape(model, fingerprint string, choices int, columns Columns, usage bool, report *SearchReport, receipt func() *receipt.Receipt) *textShape {
	t := &textShape{heading: newHeading("cmpl-", model, fingerprint), offsets: make([]int, choices), columns: columns, usage: usage, report: report, receipt: receipt}
	t.Object = "text_completion"
	return t
}

// Open has nothing to note: prompts are read whole.
func (t *textShape) Open(tts.Delta) {}

func (t *textShape) response(usage optionalUsage, choices ...textChoice) *textResponse {
	return &textResponse{heading: t.heading, Choices: choices, Usage: usage}
}

// choice writes a part, or all, of one.
func (t *textShape) choice(index int, text string, tokens []tts.Token, finish tts.Finish) textChoice {
	c := textChoice{Index: index, Text: text, FinishReason: finishReason(finish)}
	if t.columns.Tokens {
		c.Tokens = tokenIDs(tokens)
	}
	if t.columns.Logprobs {
		c.Logprobs, t.offsets[index] = newTextLogprobs(tokens, t.offsets[index])
		if t.columns.Tokens {
			for i := range tokens {
				c.Logprobs.Certainty = append(c.Logprobs.Certainty, certainty(&tokens[i]))
			}
		}
	}
	return c
}

func (t *textShape) Whole(p *jsonwrite.Reply, choices []tts.Delta, u tts.Usage) {
	r := t.response(t.report.usage(u))
	r.Choices, r.Scaling, r.Receipt = []textChoice{}, t.report.summary(), t.receipt()
	p.Around(r, `"choices":[]`, func() {
		p.Raw(`"choices":`)
		p.List(len(choices), func(i int) { t.wholeChoice(p, i, &choices[i]) })
	})
}

// wholeChoice writes a whole choice.
func (t *textShape) wholeChoice(p *jsonwrite.Reply, index int, ch *tts.Delta) {
	whole := textChoice{Index: index, Text: ch.Text, FinishReason: finishReason(ch.Finish), Scaling: t.report.choice(index)}
	if t.columns.Tokens {
		whole.Tokens = tokenIDs(ch.Tokens)
	}
	if !t.columns.Logprobs {
		p.Value(whole)
		return
	}
	column := func(name string, value func(t *tts.Token) any) {
		p.Raw(`,"` + name + `":`)
		p.List(len(ch.Tokens), func(i int) { p.Value(value(&ch.Tokens[i])) })
	}
	p.Around(whole, `"logprobs":null`, func() {
		offset := 0
		p.Raw(`"logprobs":{"tokens":`)
		p.List(len(ch.Tokens), func(i int) { p.Value(tokenName(ch.Tokens[i].Bytes)) })
		column("token_logprobs", func(t *tts.Token) any { v, _ := textLogprob(t); return v })
		column("top_logprobs", func(t *tts.Token) any { _, top := textLogprob(t); return top })
		column("text_offset", func(t *tts.Token) any { at := offset; offset += utf8.RuneCount(t.Bytes); return at })
		if t.columns.Tokens {
			column("certainty", func(t *tts.Token) any { return certainty(t) })
		}
		p.Raw("}")
	})
}

// Begin has no chunk: text has no role.
func (t *textShape) Begin(int) any { return nil }

func (t *textShape) Chunk(d tts.Delta) any {
	r := t.delta(t.choice(d.Choice, d.Text, d.Tokens, d.Finish))
	if d.Finish == "" && !t.columns.Tokens {
		r.Fingerprint = ""
	}
	if d.Finish != "" {
		r.Choices[0].Scaling = t.report.choice(d.Choice)
		r.Scaling = t.report.search(d.Choice)
	}
	return r
}

func (t *textShape) KeepAlive() any {
	r := t.delta(textChoice{})
	r.Scaling = t.report.progress()
	return r
}

func (t *textShape) delta(c textChoice) *textResponse {
	var u optionalUsage
	if t.usage {
		u = nullUsage
	}
	return t.response(u, c)
}

func (t *textShape) End(u tts.Usage) any {
	receipt := t.receipt()
	if !t.usage && receipt == nil {
		return nil
	}
	r := t.response(nil)
	if t.usage {
		r.Usage = t.report.usage(u)
	}
	r.Choices, r.Receipt = []textChoice{}, receipt // an empty list, not null
	return r
}

// Done is OpenAI's end mark.
func (t *textShape) Done() any { return jsonwrite.Done }

// Lines says that answers are streamed as events.
func (t *textShape) Lines() bool { return false }
