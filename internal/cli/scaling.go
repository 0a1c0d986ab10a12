package cli

import (
	"net/http"

	"github.com/lutra-lm/lutra/tts"
)

// searchTemperature is that of ask and chat when they search: candidates of
// the greedy answer would all be the same.
const searchTemperature = 0.8

// strategy is how the first model answers.
func (o *askOptions) strategy(r *runtime, limits tts.Limits) (tts.Strategy, error) {
	model := r.hosts[0].model
	if o.scaling == "" {
		return tts.Single{Model: model}, nil
	}
	plan, err := tts.ParsePlan(o.scaling)
	if err == nil {
		err = plan.Validate(limits)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return tts.Search{Model: model, Plan: plan, Limits: limits, Verifiers: r.verifiers(model)}, nil
}

// scaled sends requests that ask a server for a search, by the header that
// typed clients can set.
type scaled struct{ plan string }

// Do implements openai.HTTPDoer.
func (s scaled) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("X-Lutra-Scaling", s.plan)
	return http.DefaultClient.Do(r)
}
