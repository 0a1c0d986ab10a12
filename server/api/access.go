package api

import (
	"net/http"
	"slices"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/residency"
)

// Access refuses a model that the call's key may not use, and with the same words one that
// does not exist: what else there is, such a key does not learn.
func (c *Call) Access(models *residency.Set, name string, tasks ...string) error {
	if c.Key.May(models.Names(name, tasks...)...) {
		return nil
	}
	c.Key.Forbidden()
	if name == "" {
		name = registry.DefaultName
	}
	return InvalidStatus(http.StatusNotFound, "model_not_found", "model",
		"The model '"+jsonread.Brief(name)+"' does not exist, or this key may not use it.")
}

// Cards returns the cards of the models that the call's key may use.
func (c *Call) Cards() ([]registry.Card, error) {
	models, err := c.Models()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(models.Cards(), func(card registry.Card) bool { return !c.Key.May(models.Names(card.ID)...) }), nil
}

// Known returns the models, of which the call's key may use the one of a name.
func (c *Call) Known(name string) (*residency.Set, error) {
	models, err := c.Models()
	if err != nil {
		return nil, err
	}
	return models, c.Access(models, name)
}
