package openai

import "github.com/lutra-lm/lutra/server/api"

// Protocol returns the API: errors are written as its own where no other API owns a request.
func Protocol() api.Protocol {
	return api.Protocol{
		Failure: func(f *api.Fault, _ string) any { return Failure(f) },
		Routes: []api.Route{
			api.Get("/v1/models", listModels),
			api.Get("/v1/models/*", showModel),
			api.Post("/v1/chat/completions", api.ChatFactor, chat),
			api.PostAnswer("/v1/chat/completions/render", api.ChatFactor, renderChat),
			api.Post("/v1/completions", api.CompletionFactor, completions),
			api.PostAnswer("/v1/completions/render", api.CompletionFactor, renderCompletions),
			api.PostRead("/v1/embeddings", api.EmbeddingFactor, embeddings),
		},
	}
}
