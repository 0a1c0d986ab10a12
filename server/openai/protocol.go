// Package openai reads and writes the JSON of OpenAI's API, with what vLLM,
// llama.cpp and Lutra add to it.
//
//	jsonread.Fields ──reader──▶ tts.Request       tts.Event ──chatEncoder, textEncoder──▶ JSON
package openai

import (
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/registry"
)

// Protocol returns the API: errors are written as its own where no other API owns a request.
func Protocol() api.Protocol {
	return api.Protocol{
		Failure: func(f *api.Fault, _ string) any { return api.Failure(f) },
		Routes: []api.Route{
			{Path: "/v1/models", Answer: api.ListModels},
			{Path: "/v1/models/*", Answer: showModel},
			{Path: "/v1/profiles", Answer: listProfiles},
			{Path: "/v1/chat/completions", Factor: api.ChatFactor, Ask: chat},
			{Path: "/v1/chat/completions/render", Factor: api.ChatFactor, Answer: renderChat},
			{Path: "/v1/completions", Factor: api.CompletionFactor, Ask: completions},
			{Path: "/v1/completions/render", Factor: api.CompletionFactor, Answer: renderCompletions},
			{Path: "/v1/embeddings", Factor: api.EmbeddingFactor, Read: embeddings},
		},
	}
}

// showModel answers GET /v1/models/{name}.
func showModel(c *api.Call) error {
	return api.ShowModel(c, api.ListModels, func(card registry.Card) any { return card })
}
