package cli

import (
	"errors"
	"fmt"
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
		return nil, usagef("--scaling: %w", planError(err))
	}
	return tts.Search{Model: model, Plan: plan, Limits: limits, Verifiers: r.verifiers(model)}, nil
}

// planError words what is wrong with a written plan for whoever wrote it.
func planError(err error) error {
	var plan *tts.PlanError
	switch {
	case !errors.As(err, &plan):
		return err
	case plan.Code == tts.CodeUnknownMethod:
		return fmt.Errorf("%s; or in short bon8, sc16, beam16x4, dvts16x4", plan.Message)
	case plan.Field == "":
		return errors.New(plan.Message)
	}
	return fmt.Errorf("%s: %s", plan.Field, plan.Message)
}

// scaled sends requests that ask a server for a search, by the header that
// typed clients can set.
type scaled struct{ plan string }

// Do implements openai.HTTPDoer.
func (s scaled) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("X-Lutra-Scaling", s.plan)
	return http.DefaultClient.Do(r)
}
