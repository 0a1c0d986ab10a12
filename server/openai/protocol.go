// Package openai reads and writes the JSON of OpenAI's API, with what vLLM,
// llama.cpp and Lutra add to it.
//
//	jsonread.Fields ──Fields──▶ tts.Request       tts.Event ──chatEncoder, textEncoder──▶ JSON
//
// Other APIs read with Fields what they have in common with it. bounds.go lists what a
// request may hold.
package openai

import (
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/registry"
)

// Protocol returns the API: errors are written as its own where no other API owns a request.
func Protocol() api.Protocol {
	return api.Protocol{
		Failure: func(f *api.Fault, _ string) any { return Failure(f) },
		Routes: []api.Route{
			{Path: "/v1/models", Answer: ListModels},
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

// ListModels answers GET /v1/models.
func ListModels(c *api.Call) error {
	cards, err := c.Cards()
	if err != nil {
		return err
	}
	return c.JSON(struct {
		Object string          `json:"object"`
		Data   []registry.Card `json:"data"`
	}{"list", cards})
}

// showModel answers GET /v1/models/{name}.
func showModel(c *api.Call) error {
	return ShowModel(c, ListModels, func(card registry.Card) any { return card })
}

// ShowModel answers with the card of the model that a path names, or with list where it names
// none. The path is a wildcard: names may hold slashes, escaped or not.
func ShowModel(c *api.Call, list func(*api.Call) error, show func(registry.Card) any) error {
	name, err := url.PathUnescape(chi.URLParamFromCtx(c.Context(), "*"))
	if err != nil || name == "" {
		return list(c)
	}
	card, err := c.Card(name)
	if err != nil {
		return err
	}
	return c.JSON(show(card))
}
