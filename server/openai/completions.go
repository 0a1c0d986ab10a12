package openai

import (
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// completions reads POST /v1/completions.
func completions(c *api.Call) (*api.Ask, error) {
	a, err := readCompletions(c)
	if err != nil {
		return nil, err
	}
	return a.Ask, a.beginReceipt(c)
}

func readCompletions(c *api.Call) (*asked, error) {
	a, err := fields.Generator(c)
	if err != nil {
		return nil, err
	}
	if a.Model.Thinking != nil {
		return nil, api.Invalid(jsonread.CodeValue, "model", "The name '%s' switches thinking, which belongs to conversations. Send them to /v1/chat/completions.", jsonread.Brief(a.Name))
	}
	f, req := newReader(c), tts.Request{}
	prompts := f.Prompts(c.MaxChoices, a.Model.Model)
	f.Candidates(&req, a.Model.Model, c.MaxChoices)
	if req.Continued != nil && len(prompts) > 1 {
		f.Fail(jsonread.CodeValue, "prompt", "candidates share one prompt, but there are %d.", len(prompts))
	}
	infill := f.Suffix(a.Model.Model)
	named := f.Sampling(&req, a.Model.Model, c.MaxChoices, sampling.Config{})
	if req.Continued != nil {
		req.N = len(req.Continued)
	}
	if len(prompts)*req.N > c.MaxChoices {
		f.Fail(jsonread.CodeValue, "n", "%d prompts with %d choices each are more than the %d choices allowed.", len(prompts), req.N, c.MaxChoices)
	}
	req.Sampling.MaxTokens = 16 // OpenAI's default
	f.TokenLimit(&req, 0, "max_tokens", "max_completion_tokens")
	f.Bool("echo", &req.Echo)
	special := true
	f.Bool("add_special_tokens", &special)
	listed := f.Int("logprobs", &req.Sampling.TopLogprobs, 0, fields.MaxTopLogprobs)
	var ids bool
	f.Bool("return_tokens", &ids)
	req.Sampling.Logprobs = listed || ids // tokens come with both
	more := f.listed(&req)
	req.MaxLogprobs = fields.MaxLogprobs / max(len(prompts), 1)
	f.BestOf(c, a, &req)
	f.Format(&req, a.Model.Model)
	report := f.Scale(c, a, &req, named)
	clock := f.clock(report)
	f.Bookkeeping()
	stream, usage := f.streaming()
	wish := f.receipt()
	if err := fields.Finish(c); err != nil {
		return nil, err
	}
	for _, p := range prompts {
		r := req
		r.Prompt = p
		r.Prompt.NoBOS = !special
		if infill != nil && r.Prompt.Tokens == nil {
			r.Prompt.Infill = infill
		}
		a.Requests = append(a.Requests, &r)
	}
	report.Expect(len(prompts), req.N)
	if more != nil {
		more.n = req.N
	}
	e := &textEncoder{n: req.N, offsets: make([]int, a.Choices()), logprobs: listed, tokens: ids,
		encoder: encoder{heading: newHeading("cmpl-", a.Name, a.Model.Fingerprint), usage: usage, listed: more, clock: clock, report: report}}
	e.Object = "text_completion"
	a.Stream, a.Encoder = stream, e
	return &asked{a, &e.encoder, wish}, nil
}
