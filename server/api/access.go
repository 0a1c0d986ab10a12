package api

import (
	"net/http"
	"slices"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/residency"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// ErrAdmin answers a request that needs more than its key.
var ErrAdmin = InvalidStatus(http.StatusForbidden, "admin_key_required", "", "This takes an admin key: one whose line in the server's file of keys says so.")

// Access refuses a model that the call's key may not use, in the words for a model that does not exist, so
// that the key does not learn of others.
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
	cards := slices.DeleteFunc(models.Cards(), func(card registry.Card) bool { return !c.Key.May(models.Names(card.ID)...) })
	for i := range cards {
		cards[i].OfferOnly(func(verifier string) bool { return c.mayJudge(models, verifier) })
	}
	return cards, nil
}

// Card returns the card of a model that the call's key may use.
func (c *Call) Card(name string) (card registry.Card, err error) {
	models, err := c.Known(name)
	if err != nil {
		return card, err
	}
	card, err = models.Card(name)
	card.OfferOnly(func(verifier string) bool { return c.mayJudge(models, verifier) })
	return card, err
}

// Verifiers returns the verifiers of m that the call's key may use: a model or service by its name,
// and what is of m itself.
func (c *Call) Verifiers(m *registry.Model) tts.Verifiers {
	models, err := c.Models()
	if err != nil || c.Key == nil || c.Key.Models == nil {
		return m.Verifiers
	}
	return m.Verifiers.Only(func(name string) bool { return m.Model.HasProbe(name) || c.mayJudge(models, name) })
}

// mayJudge tells whether the call's key may use a verifier.
func (c *Call) mayJudge(models *residency.Set, verifier string) bool {
	return scaling.OwnVerifier(verifier) || c.Key.May(append(models.Names(verifier), verifier)...)
}

// Known returns the models, of which the call's key may use the one of a name.
func (c *Call) Known(name string) (*residency.Set, error) {
	models, err := c.Models()
	if err != nil {
		return nil, err
	}
	return models, c.Access(models, name)
}
