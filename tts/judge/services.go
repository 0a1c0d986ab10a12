package judge

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/verify"
)

// Services judge candidates of all models, besides the verifiers that are loaded.
type Services struct {
	Webhooks []verify.WebhookOptions `yaml:"webhooks"` // services that judge candidates
	Judges   []Options               `yaml:"judges"`   // by which models judge their own
}

// mostJudges bounds how many services may judge, and how many rubrics there may be.
const mostJudges = 64

// Validate reports the first fault, which begins with its key. Their names are none of verifiers, the
// names of the verifiers that are loaded.
func (s *Services) Validate(verifiers ...string) error {
	names := append([]string{scaling.VerifierLogprob, scaling.VerifierSelfCertainty, scaling.VerifierSelf}, verifiers...)
	check := func(key, name string, fault error) error {
		if fault != nil {
			return fmt.Errorf("%s.%w", key, fault)
		}
		if slices.Contains(names, name) {
			return fmt.Errorf("%s.name: %q is another verifier's", key, name)
		}
		names = append(names, name)
		return nil
	}
	for key, n := range map[string]int{"webhooks": len(s.Webhooks), "judges": len(s.Judges)} {
		if n > mostJudges {
			return fmt.Errorf("%s: %d are more than %d", key, n, mostJudges)
		}
	}
	for i, w := range s.Webhooks {
		if err := check(fmt.Sprintf("webhooks[%d]", i), w.Name, w.Validate()); err != nil {
			return err
		}
	}
	for i, j := range s.Judges {
		if err := check(fmt.Sprintf("judges[%d]", i), j.Name, j.Validate()); err != nil {
			return err
		}
	}
	return nil
}

// Scorers returns the services by name: the models themselves, by the operator's rubrics, and webhooks.
func (s *Services) Scorers() map[string]tts.Scorer {
	if len(s.Webhooks)+len(s.Judges) == 0 {
		return nil
	}
	scorers := map[string]tts.Scorer{}
	for _, w := range s.Webhooks {
		scorers[w.Name] = search.ByWebhook(verify.NewWebhook(w))
	}
	for _, j := range s.Judges {
		scorers[j.Name] = New(j, nil)
	}
	return scorers
}
