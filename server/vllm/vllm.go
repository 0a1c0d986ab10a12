// Package vllm is what servers of models have for their clients besides OpenAI's API, under
// the names that vLLM gave it: tokens, rankings and scores.
package vllm

import "github.com/lutra-lm/lutra/server/api"

// Protocol returns the API.
func Protocol() api.Protocol {
	p := api.Protocol{Routes: []api.Route{
		api.PostAnswer("/tokenize", api.TokenizeFactor, tokenize),
		api.PostAnswer("/detokenize", api.DetokenizeFactor, detokenize),
		api.Get("/tokenizer_info", tokenizerInfo),
		api.PostRead("/v1/rewards", api.RewardFactor, rewards),
	}}
	for _, path := range []string{"/v1/rerank", "/v2/rerank", "/rerank"} {
		p.Routes = append(p.Routes, api.PostRead(path, api.EmbeddingFactor, rerank))
	}
	for _, path := range []string{"/v1/score", "/score"} {
		p.Routes = append(p.Routes, api.PostRead(path, api.EmbeddingFactor, score))
	}
	return p
}
