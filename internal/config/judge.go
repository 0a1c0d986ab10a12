package config

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/judge"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/verify"
)

// mostJudges bounds how many services may judge, and how many rubrics there may be.
const mostJudges = 64

// validateJudges reports the first fault of the judges and services that verify beside loaded
// verifiers. Their names must differ from those verifiers'.
func (c *Config) validateJudges() error {
	names := []string{scaling.VerifierLogprob, scaling.VerifierSelfCertainty, scaling.VerifierSelf}
	for _, v := range c.Verifiers {
		names = append(names, v.Model().APIName())
	}
	check := func(key, name string, fault error) error {
		if fault != nil {
			return fmt.Errorf("%s.%w", key, fault)
		}
		if slices.Contains(names, name) {
			return fmt.Errorf("%s.name: %q is another verifier's", key, usage.Brief(name))
		}
		names = append(names, name)
		return nil
	}
	for key, n := range map[string]int{"webhooks": len(c.Search.Webhooks), "judges": len(c.Search.Judges)} {
		if n > mostJudges {
			return fmt.Errorf("search.%s: %d are more than %d", key, n, mostJudges)
		}
	}
	for i, w := range c.Search.Webhooks {
		if err := check(fmt.Sprintf("search.webhooks[%d]", i), w.Name, w.Validate()); err != nil {
			return err
		}
	}
	for i, j := range c.Search.Judges {
		if err := check(fmt.Sprintf("search.judges[%d]", i), j.Name, j.Validate()); err != nil {
			return err
		}
	}
	return nil
}

// Scorers returns what judges candidates of all models, by name: the models themselves, by the
// operator's rubrics, and services.
func (s *Search) Scorers() map[string]tts.Scorer {
	if len(s.Webhooks)+len(s.Judges) == 0 {
		return nil
	}
	scorers := map[string]tts.Scorer{}
	for _, w := range s.Webhooks {
		scorers[w.Name] = tts.ByWebhook(verify.NewWebhook(w))
	}
	for _, j := range s.Judges {
		scorers[j.Name] = judge.New(j, nil)
	}
	return scorers
}
