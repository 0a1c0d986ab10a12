package openai

import (
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// chat reads POST /v1/chat/completions.
func chat(c *api.Call) (*api.Ask, error) {
	a, err := readChat(c)
	if err != nil {
		return nil, err
	}
	return a.Ask, a.beginReceipt(c)
}

func readChat(c *api.Call) (*asked, error) {
	a, err := fields.Generator(c)
	if err != nil {
		return nil, err
	}
	f, req := newReader(c), &tts.Request{}
	req.Prompt, req.MaxThinking = f.Conversation()
	a.Model.Switch(&req.Prompt)
	named := f.Sampling(req, a.Model.Model, c.MaxChoices, sampling.Config{})
	f.TokenLimit(req, 1, "max_completion_tokens", "max_tokens")
	f.Bool("logprobs", &req.Sampling.Logprobs)
	if f.Int("top_logprobs", &req.Sampling.TopLogprobs, 0, fields.MaxTopLogprobs) && !req.Sampling.Logprobs {
		f.Fail(jsonread.CodeValue, "top_logprobs", "it is only allowed when 'logprobs' is true.")
	}
	more := f.listed(req)
	req.MaxLogprobs = fields.MaxLogprobs
	apart, reasoning := f.reasoningFormat(c.ReasoningFormat), true
	f.Bool("include_reasoning", &reasoning)
	calling := f.ToolChoice(req, a.Model.Model)
	f.Format(req, a.Model.Model)
	if echo := f.echoed(&req.Prompt); echo != "" {
		a.Filters = append(a.Filters, tts.Echo(echo, req.N))
	}
	f.modalities()
	report := f.Scale(c, a, req, named)
	clock := f.clock(report)
	f.Bookkeeping()
	stream, usage := f.streaming()
	wish := f.receipt()
	if err := fields.Finish(c); err != nil {
		return nil, err
	}
	report.Expect(1, req.N)
	if apart {
		a.Filters = append(a.Filters, a.Model.Model.Thoughts(req.N))
	}
	if calling != nil {
		a.Filters = append(a.Filters, calling.Filter(req.N))
	}
	if !reasoning {
		a.Filters = append(a.Filters, tts.WithoutReasoning)
	}
	if more != nil {
		more.n = req.N
	}
	e := &chatEncoder{n: req.N, logprobs: req.Sampling.Logprobs, calls: calling != nil,
		encoder: encoder{heading: newHeading("chatcmpl-", a.Name, a.Model.Fingerprint), usage: usage, listed: more, clock: clock, report: report}}
	a.Requests, a.Stream, a.Encoder = []*tts.Request{req}, stream, e
	return &asked{a, &e.encoder, wish}, nil
}
