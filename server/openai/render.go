package openai

import (
	"math"

	"github.com/google/uuid"

	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
)

// Rendered is vLLM's GenerateRequest, with which its render endpoints answer: what the
// engine would be given for one prompt of a request.
type Rendered struct {
	Tokens  []int32
	Dropped int // messages that were left out
	params  renderedParams
}

// renderedParams are the sampling parameters under vLLM's names.
type renderedParams struct {
	N                 int      `json:"n"`
	Temperature       float32  `json:"temperature"`
	TopP              float32  `json:"top_p"`
	TopK              int      `json:"top_k"`
	MinP              float32  `json:"min_p"`
	PresencePenalty   float32  `json:"presence_penalty"`
	FrequencyPenalty  float32  `json:"frequency_penalty"`
	RepetitionPenalty float32  `json:"repetition_penalty"`
	Seed              *uint64  `json:"seed"`
	Stop              []string `json:"stop"`
	MinTokens         int      `json:"min_tokens"`
	MaxTokens         int      `json:"max_tokens"`
	IgnoreEOS         bool     `json:"ignore_eos"`
	Logprobs          *int     `json:"logprobs"`
}

// NewRendered describes a request with the prepared prompt p, of a model of so long a
// context. seeded tells that the seed is the request's own.
func NewRendered(req *tts.Request, p *tts.Prepared, context int, seeded bool) Rendered {
	s := &req.Sampling
	params := renderedParams{N: max(req.N, 1), Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MinP: s.MinP,
		PresencePenalty: s.PresencePenalty, FrequencyPenalty: s.FrequencyPenalty, RepetitionPenalty: 1, Stop: req.Stop,
		MinTokens: req.MinTokens, MaxTokens: max(context-len(p.Tokens), 0), IgnoreEOS: s.IgnoreEOS}
	if s.TopP <= math.SmallestNonzeroFloat32 {
		params.TopP = 0
	}
	if s.RepetitionPenalty > 0 {
		params.RepetitionPenalty = s.RepetitionPenalty
	}
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
	return Rendered{Tokens: p.Tokens, Dropped: p.Dropped, params: params}
}

// Write writes r, of a request for that model under the name of it; prefix begins its id.
// stream and usage tell of what the request's stream is to be.
func (r *Rendered) Write(p *jsonwrite.Reply, prefix, model string, stream, usage bool) {
	p.Raw(`{"request_id":`)
	p.Text(prefix + uuid.NewString())
	p.Raw(`,"token_ids":`)
	p.List(len(r.Tokens), func(i int) { p.Int(r.Tokens[i]) })
	p.Raw(`,"features":null,"sampling_params":`)
	p.Value(&r.params)
	p.Raw(`,"model":`)
	p.Text(model)
	p.Raw(`,"stream":`)
	p.Value(stream)
	p.Raw(`,"stream_options":`)
	if stream && usage {
		p.Raw(`{"include_usage":true}`)
	} else {
		p.Raw("null")
	}
	p.Raw(`,"cache_salt":null,"priority":0,"kv_transfer_params":null`)
	if t := NewTruncation(r.Dropped); t != nil {
		p.Raw(`,"truncation":`)
		p.Value(t)
	}
	p.Raw("}")
}
