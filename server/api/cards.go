package api

import (
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/lutra-lm/lutra/server/registry"
)

// ListModels answers GET /v1/models.
func ListModels(c *Call) error {
	cards, err := c.Cards()
	if err != nil {
		return err
	}
	return c.JSON(struct {
		Object string          `json:"object"`
		Data   []registry.Card `json:"data"`
	}{"list", cards})
}

// ShowModel answers with the card of the model that a path names, or with list where it names
// none. The path is a wildcard: names may hold slashes, escaped or not.
func ShowModel(c *Call, list func(*Call) error, show func(registry.Card) any) error {
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
