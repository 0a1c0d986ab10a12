package config

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/verify"
)

// mostWebhooks bounds how many services may judge.
const mostWebhooks = 64

// validateWebhooks reports the first fault of the services that judge candidates. Their names are those
// of no other verifier.
func (c *Config) validateWebhooks() error {
	if n := len(c.Search.Webhooks); n > mostWebhooks {
		return fmt.Errorf("search.webhooks: %d are more than %d", n, mostWebhooks)
	}
	names := []string{scaling.VerifierLogprob, scaling.VerifierSelfCertainty}
	for _, v := range c.Verifiers {
		names = append(names, v.Model().APIName())
	}
	for i, w := range c.Search.Webhooks {
		if err := w.Validate(); err != nil {
			return fmt.Errorf("search.webhooks[%d].%w", i, err)
		}
		if slices.Contains(names, w.Name) {
			return fmt.Errorf("search.webhooks[%d].name: %q is another verifier's", i, usage.Brief(w.Name))
		}
		names = append(names, w.Name)
	}
	return nil
}

// Scorers returns the services that judge candidates, by their names.
func (s *Search) Scorers() map[string]tts.Scorer {
	var scorers map[string]tts.Scorer // nil: there are none
	for _, w := range s.Webhooks {
		if scorers == nil {
			scorers = map[string]tts.Scorer{}
		}
		scorers[w.Name] = tts.ByWebhook(verify.NewWebhook(w))
	}
	return scorers
}
