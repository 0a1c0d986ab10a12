package openai

import (
	"time"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/tts/profile"
)

// expectation has the quality and the time that are expected of a model's methods now.
type expectation struct {
	Model  string            `json:"model"`
	Points []*profile.Choice `json:"points"`
}

// listProfiles answers GET /v1/profiles with the models in memory that were profiled, and that
// the call's key may use.
func listProfiles(c *api.Call) error {
	models, err := c.Models()
	if err != nil {
		return err
	}
	cards, err := c.Cards()
	if err != nil {
		return err
	}
	list, loaded := []expectation{}, models.Registry()
	for _, card := range cards {
		m := loaded.Named(card.ID)
		if m == nil || m.Name != card.ID || m.Curve == nil {
			continue
		}
		candidate := fields.CandidateOf(c, m, 1)
		list = append(list, expectation{m.Name, candidate.Expected(time.Now())})
	}
	return c.JSON(struct {
		Object string        `json:"object"`
		Data   []expectation `json:"data"`
	}{"list", list})
}
