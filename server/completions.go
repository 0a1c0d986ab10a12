package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
)

// completions is POST /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request, f fields) error {
	g, err := s.completionRequest(f, r.Header)
	if err != nil {
		return err
	}
	s.trace(r, g)
	return s.generate(w, r, g)
}

// completionRequest checks a text completion request.
func (s *Server) completionRequest(f fields, header http.Header) (*generation, error) {
	g, err := s.beginGenerator(f)
	if err != nil {
		return nil, err
	}
	var req tts.Request
	prompts := f.prompts(s.opt.MaxChoices, g.model.Model)
	tempered := f.Has("temperature")
	f.sampling(&req, g.model.Model, s.opt.MaxChoices)
	if len(prompts)*req.N > s.opt.MaxChoices {
		f.Fail(jsonread.CodeValue, "n", "%d prompts with %d choices each are more than the %d choices allowed.", len(prompts), req.N, s.opt.MaxChoices)
	}
	req.Sampling.MaxTokens = 16 // OpenAI's default
	f.tokenLimit(&req, 0, "max_tokens", "max_completion_tokens")
	f.Bool("echo", &req.Echo)
	special := true
	f.Bool("add_special_tokens", &special)
	req.Sampling.Logprobs = f.Int("logprobs", &req.Sampling.TopLogprobs, 0, maxTopLogprobs)
	req.MaxLogprobs = maxLogprobs / max(len(prompts), 1)
	s.bestOf(f, g, &req)
	s.scale(f, header, g, &req, tempered)
	f.responseFormat()
	f.bookkeeping()
	shape := &textShape{id: "cmpl-" + uuid.NewString(), created: time.Now().Unix(), model: g.name, logprobs: req.Sampling.Logprobs}
	g.stream, shape.usage = f.streaming()
	shape.searched = g.report
	if err := s.finish(f); err != nil {
		return nil, err
	}
	for _, p := range prompts {
		r := req
		r.Prompt = p
		r.Prompt.Bare = !special
		g.requests = append(g.requests, &r)
	}
	g.report.of(len(prompts), req.N)
	shape.offsets = make([]int, g.choices())
	g.shape = shape
	return g, nil
}

// prompts reads a text, a list of texts, a list of token ids, or a list of
// such lists.
func (f fields) prompts(most int, m *tts.Model) []tts.Prompt {
	const name = "prompt"
	raw, ok := f.Take(name)
	if !ok {
		f.Fail(jsonread.CodeMissing, name, "a prompt is required.")
		return nil
	}
	if s, ok := jsonread.Text(raw); ok {
		return []tts.Prompt{{Text: s}}
	}
	if jsonread.Kind(raw) != "a list" {
		f.WrongType(name, "a string, a list of strings, a list of token ids or a list of such lists", raw)
		return nil
	}
	first := "nothing"
	for item := range jsonread.Elements(raw) {
		first = jsonread.Kind(item)
		break
	}
	switch first {
	case "nothing":
		f.Fail(jsonread.CodeValue, name, "the list is empty.")
		return nil
	case "a number":
		return []tts.Prompt{{Tokens: f.promptTokens(name, raw, m)}}
	}
	items, _ := f.Items(name, raw, most)
	prompts := make([]tts.Prompt, len(items))
	for i, item := range items {
		switch jsonread.Kind(item) {
		case "a string":
			prompts[i].Text, _ = jsonread.Text(item)
		case "a list":
			prompts[i].Tokens = f.promptTokens(fmt.Sprintf("prompt[%d]", i), item, m)
		}
		if jsonread.Kind(item) != first || first != "a string" && first != "a list" {
			f.WrongType(name, "a string, a list of strings, a list of token ids or a list of such lists", item)
		}
	}
	return prompts
}

// promptTokens reads raw, found at name, as the tokens of one prompt.
func (f fields) promptTokens(name string, raw json.RawMessage, m *tts.Model) []int32 {
	n := jsonread.Count(raw)
	switch {
	case n == 0:
		f.Fail(jsonread.CodeValue, name, "the list is empty.")
	case n > m.Context && f.Err == nil:
		f.Err = &tts.ContextError{Limit: m.Context, Prompt: n}
	}
	return f.Tokens(name, raw, m.Context, m.Vocab)
}

// textShape writes text completions.
type textShape struct {
	id       string
	created  int64
	model    string
	logprobs bool
	usage    bool          // the stream ends with the usage
	offsets  []int         // of each choice's next token in its text
	searched *searchReport // nil: there was no search
}

// open has nothing to note: prompts are read whole.
func (t *textShape) Open(tts.Delta) {}

func (t *textShape) response(usage optionalUsage, choices ...textChoice) *textResponse {
	return &textResponse{ID: t.id, Object: "text_completion", Created: t.created, Model: t.model, Choices: choices, Usage: usage}
}

// choice writes a part, or all, of one.
func (t *textShape) choice(index int, text string, tokens []tts.Token, finish tts.Finish) textChoice {
	c := textChoice{Index: index, Text: text, FinishReason: finishReason(finish)}
	if t.logprobs {
		c.Logprobs, t.offsets[index] = newTextLogprobs(tokens, t.offsets[index])
	}
	return c
}

func (t *textShape) Whole(p *jsonwrite.Reply, choices []tts.Delta, u tts.Usage) {
	r := t.response(t.searched.usage(u))
	r.Choices, r.Scaling = []textChoice{}, t.searched.summary()
	p.Around(r, `"choices":[]`, func() {
		p.Raw(`"choices":`)
		p.List(len(choices), func(i int) { t.wholeChoice(p, i, &choices[i]) })
	})
}

// wholeChoice writes all of one.
func (t *textShape) wholeChoice(p *jsonwrite.Reply, index int, ch *tts.Delta) {
	whole := textChoice{Index: index, Text: ch.Text, FinishReason: finishReason(ch.Finish), Scaling: t.searched.choice(index)}
	if !t.logprobs {
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
		p.Raw("}")
	})
}

// begin has nothing to say: text has no role.
func (t *textShape) Begin(int) any { return nil }

func (t *textShape) Chunk(d tts.Delta) any {
	r := t.delta(t.choice(d.Choice, d.Text, d.Tokens, d.Finish))
	if d.Finish != "" {
		r.Choices[0].Scaling = t.searched.choice(d.Choice)
		r.Scaling = t.searched.search(d.Choice)
	}
	return r
}

func (t *textShape) Alive() any {
	r := t.delta(textChoice{})
	r.Scaling = t.searched.progress()
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
	if !t.usage {
		return nil
	}
	r := t.response(t.searched.usage(u))
	r.Choices = []textChoice{} // a list, though an empty one
	return r
}
