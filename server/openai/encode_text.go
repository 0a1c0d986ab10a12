package openai

import (
	"unicode/utf8"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/receipt"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
)

// textEncoder writes text completions.
type textEncoder struct {
	encoder
	logprobs bool  // list the tokens with their log-probabilities
	tokens   bool  // list the tokens' ids, and besides log-probabilities how certain the model was
	offsets  []int // of each choice's next token in its text
	n        int   // choices of each prompt
}

func (t *textEncoder) response(usage optionalUsage, choices ...textChoice) *textResponse {
	return &textResponse{heading: t.heading, Choices: choices, Usage: usage}
}

func (t *textEncoder) Full(p *jsonwrite.Reply, u tts.Usage) {
	r := t.response(newUsage(u, t.report))
	r.Choices, r.Scaling, r.Receipt = []textChoice{}, t.report.Summary(), t.builder.Receipt()
	r.Timings = t.clock.timings(u)
	p.Filled(r, "choices", len(t.choices.List), func(i int) { t.choice(p, i, t.choices.List[i]) })
}

// choice writes a whole choice.
func (t *textEncoder) choice(p *jsonwrite.Reply, index int, ch *api.Choice) {
	whole := textChoice{Index: index, Text: ch.Text(), FinishReason: report.FinishReason(ch.Finish), Scaling: t.report.Choice(index)}
	if t.tokens {
		whole.Tokens = tokenIDs(ch.Tokens)
	}
	column := func(name string, value func(t *tts.Token) any) {
		p.Raw(`,"` + name + `":`)
		p.List(len(ch.Tokens), func(i int) { p.Value(value(&ch.Tokens[i])) })
	}
	p.Around(whole, `"logprobs":null`, func() {
		defer t.listed.writePrompt(p, index/t.n)
		defer t.listed.writeTokens(p, index)
		if !t.logprobs {
			p.Raw(`"logprobs":null`)
			return
		}
		offset := 0
		p.Raw(`"logprobs":{"tokens":`)
		p.List(len(ch.Tokens), func(i int) { p.Value(tokenName(ch.Tokens[i].Bytes)) })
		column("token_logprobs", func(t *tts.Token) any { v, _ := textLogprob(t); return v })
		column("top_logprobs", func(t *tts.Token) any { _, top := textLogprob(t); return top })
		column("text_offset", func(t *tts.Token) any { at := offset; offset += utf8.RuneCount(t.Bytes); return at })
		if t.tokens {
			column("certainty", func(t *tts.Token) any { return certainty(t) })
		}
		p.Raw("}")
	})
}

func (t *textEncoder) Event(e tts.Event) any {
	if t.report.Take(e) {
		return t.KeepAlive()
	}
	t.clock.note(e)
	if t.listed.note(e) {
		return nil
	}
	var text tts.Text
	var finish tts.Finish
	switch w := e.What.(type) {
	case tts.Text:
		text = w
	case tts.Reasoning: // which completions have no field for
	case tts.End:
		finish = w.Finish
	default:
		return nil
	}
	r := t.response(t.chunkUsage(), t.part(e.Choice, text.Text, text.Tokens, finish))
	if finish == "" && !t.tokens {
		r.Fingerprint = ""
	}
	if finish != "" {
		r.Choices[0].Scaling, r.Scaling = t.report.Choice(e.Choice), t.report.Of(e.Choice)
	}
	return r
}

// part returns a part of a choice.
func (t *textEncoder) part(index int, text string, tokens []tts.Token, finish tts.Finish) textChoice {
	c := textChoice{Index: index, Text: text, FinishReason: report.FinishReason(finish)}
	c.PromptTokenIDs, c.TokenIDs = t.listed.chunk(index)
	if t.tokens {
		c.Tokens = tokenIDs(tokens)
	}
	if t.logprobs {
		c.Logprobs, t.offsets[index] = newTextLogprobs(tokens, t.offsets[index])
		if t.tokens {
			for i := range tokens {
				c.Logprobs.Certainty = append(c.Logprobs.Certainty, certainty(&tokens[i]))
			}
		}
	}
	return c
}

func (t *textEncoder) KeepAlive() any {
	r := t.response(t.chunkUsage(), textChoice{})
	r.Scaling = t.report.Progress()
	return r
}

func (t *textEncoder) End(u tts.Usage, fault *api.Fault) any {
	return t.ended(fault, func(u optionalUsage, timings *report.Timings, receipt *receipt.Receipt) any {
		r := t.response(u)
		r.Choices, r.Timings, r.Receipt = []textChoice{}, timings, receipt // an empty list, not null
		return r
	}, u)
}
