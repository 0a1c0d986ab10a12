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

// listModels answers GET /v1/models.
func listModels(c *api.Call) error {
	models, err := c.Models()
	if err != nil {
		return err
	}
	return c.JSON(struct {
		Object string          `json:"object"`
		Data   []registry.Card `json:"data"`
	}{"list", models.Cards()})
}

// showModel answers GET /v1/models/{name}.
func showModel(c *api.Call) error {
	return ShowModel(c, listModels, func(card registry.Card) any { return card })
}

// ShowModel answers with the card of the model that a path names, or with list where it names
// none. The path is a wildcard: names may hold slashes, escaped or not.
func ShowModel(c *api.Call, list func(*api.Call) error, show func(registry.Card) any) error {
	name, err := url.PathUnescape(chi.URLParamFromCtx(c.Context(), "*"))
	if err != nil || name == "" {
		return list(c)
	}
	models, err := c.Models()
	if err != nil {
		return err
	}
	m, _, err := models.Find(name)
	if err != nil {
		return err
	}
	return c.JSON(show(models.Card(name, m)))
}
