package openai

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
)

// rendered is vLLM's GenerateRequest, with which its render endpoints answer: what the
// engine would be given for one prompt of a request.
type rendered struct {
	Tokens  []int32
	Dropped int // messages that were left out
	salt    string
	params  renderedParams
}

// renderedParams are the sampling parameters under vLLM's names. Parameters that vLLM lacks have llama.cpp's, if
// they change something. The rows of sampling.Fields follow n.
type renderedParams struct {
	N     int
	drawn sampling.Params
	rest  renderedRest
}

type renderedRest struct {
	Seed      *uint64  `json:"seed"`
	Stop      []string `json:"stop"`
	MinTokens int      `json:"min_tokens"`
	MaxTokens int      `json:"max_tokens"`
	IgnoreEOS bool     `json:"ignore_eos"`
	Logprobs  *int     `json:"logprobs"`
}

func (r *renderedParams) MarshalJSON() ([]byte, error) {
	rest, err := json.Marshal(&r.rest)
	if err != nil {
		return nil, err
	}
	out := fmt.Appendf(nil, `{"n":%d`, r.N)
	changed := sampling.ConfigOf(&r.drawn)
	for _, f := range sampling.VLLM() {
		if f.VLLM > 0 || changed.Text(f.Name) != "" && f.Value(&r.drawn) != 0 { // all tokens is the default there
			out = f.Append(out, &r.drawn)
		}
	}
	return append(append(out, ','), rest[1:]...), nil
}

// renderChat answers vLLM's POST /v1/chat/completions/render: the token ids that the
// request would begin with, and how it would be sampled. What /v1/chat/completions refuses
// before it computes anything is refused here alike.
func renderChat(c *api.Call) error {
	seeded := c.Body.Has("seed")
	a, err := readChat(c)
	if err != nil {
		return err
	}
	list, err := a.render(c.Context(), seeded)
	if err != nil {
		return err
	}
	return c.Reply(func(p *jsonwrite.Reply) { list[0].write(p, "chatcmpl-", a) })
}

// renderCompletions answers vLLM's POST /v1/completions/render: a list of what renderChat
// answers, one a prompt.
func renderCompletions(c *api.Call) error {
	seeded := c.Body.Has("seed")
	a, err := readCompletions(c)
	if err != nil {
		return err
	}
	list, err := a.render(c.Context(), seeded)
	if err != nil {
		return err
	}
	return c.Reply(func(p *jsonwrite.Reply) {
		p.List(len(list), func(i int) { list[i].write(p, "cmpl-", a) })
	})
}

// render prepares the prompts as work alongside the engines. seeded tells that the request
// names its seed.
func (a *asked) render(ctx context.Context, seeded bool) ([]rendered, error) {
	ctx, leave, err := cpulimit.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	list := make([]rendered, len(a.Requests))
	for i, req := range a.Requests {
		prepared, err := a.Strategy().Prepare(ctx, req)
		if err != nil {
			return nil, err
		}
		list[i] = newRendered(req, prepared, a.Model.Context, seeded)
		list[i].salt = batcher.Salt(ctx)
	}
	return list, nil
}

// newRendered describes a request with the prepared prompt p, of a model of so long a
// context. seeded tells that the seed is the request's own.
func newRendered(req *tts.Request, p *tts.Prepared, context int, seeded bool) rendered {
	s := &req.Sampling
	params := renderedRest{Stop: req.Stop, MinTokens: req.MinTokens, MaxTokens: max(context-len(p.Tokens), 0), IgnoreEOS: s.IgnoreEOS}
	if s.MaxTokens > 0 {
		params.MaxTokens = min(params.MaxTokens, s.MaxTokens)
	}
	if req.NoTokens {
		params.MaxTokens = 0
	}
	if params.Stop == nil {
		params.Stop = []string{}
	}
	if seeded {
		params.Seed = &s.Seed
	}
	if s.Logprobs {
		params.Logprobs = &s.TopLogprobs
	}
	return rendered{Tokens: p.Tokens, Dropped: p.Dropped, params: renderedParams{max(req.N, 1), *s, params}}
}

// write writes r, of a request; prefix begins its id.
func (r *rendered) write(p *jsonwrite.Reply, prefix string, a *asked) {
	p.Raw(`{"request_id":`)
	p.Text(prefix + uuid.NewString())
	p.Raw(`,"token_ids":`)
	p.List(len(r.Tokens), func(i int) { p.Int(r.Tokens[i]) })
	p.Raw(`,"features":null,"sampling_params":`)
	p.Value(&r.params)
	p.Raw(`,"model":`)
	p.Text(a.Name)
	p.Raw(`,"stream":`)
	p.Value(a.Stream)
	p.Raw(`,"stream_options":`)
	if a.Stream && a.usage {
		p.Raw(`{"include_usage":true}`)
	} else {
		p.Raw("null")
	}
	p.Raw(`,"cache_salt":`)
	p.Value(jsonwrite.Optional(r.salt))
	p.Raw(`,"priority":0,"kv_transfer_params":null`)
	if t := report.NewTruncation(r.Dropped); t != nil {
		p.Raw(`,"truncation":`)
		p.Value(t)
	}
	p.Raw("}")
}
