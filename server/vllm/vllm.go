// Package vllm is what servers of models have for their clients besides OpenAI's API, under
// the names that vLLM gave it: tokens, rankings and scores.
package vllm

import (
	"github.com/lutra-lm/lutra/server/api"
)

// Protocol returns the API.
func Protocol() api.Protocol {
	p := api.Protocol{Routes: []api.Route{
		{Path: "/tokenize", Factor: api.TokenizeFactor, Answer: tokenize},
		{Path: "/detokenize", Factor: api.DetokenizeFactor, Answer: detokenize},
		{Path: "/tokenizer_info", Answer: tokenizerInfo},
		{Path: "/version", Answer: version},
		{Path: "/v1/rewards", Factor: api.RewardFactor, Read: rewards},
	}}
	for _, path := range []string{"/v1/rerank", "/v2/rerank", "/rerank"} {
		p.Routes = append(p.Routes, api.Route{Path: path, Factor: api.EmbeddingFactor, Read: rerank})
	}
	for _, path := range []string{"/v1/score", "/score"} {
		p.Routes = append(p.Routes, api.Route{Path: path, Factor: api.EmbeddingFactor, Read: score})
	}
	return p
}

// version answers GET /version.
func version(c *api.Call) error { return c.JSON(map[string]string{"version": c.Version}) }
