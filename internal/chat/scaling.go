package chat

import (
	"math"

	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// NoScaling stands for no search plan.
const NoScaling = "none"

// noLimits leaves limits to the server.
var noLimits = scaling.Limits{N: math.MaxInt32, MaxSteps: math.MaxInt32, Tokens: math.MaxInt32, Time: math.MaxInt64}

// checkPlan checks a written plan, and its size against limits.
func checkPlan(written string, limits scaling.Limits) error {
	plan, err := scaling.Parse(written)
	if err == nil {
		err = plan.Validate(limits)
	}
	return usage.PlanError(err)
}

// strategy returns how the model of r answers: plainly or by a search within limits.
func (o *Options) strategy(r *engines.Runtime, limits scaling.Limits) (tts.Strategy, error) {
	model := r.Hosts[0].Model
	if o.Scaling == "" {
		return tts.Single{Model: model}, nil
	}
	plan, err := scaling.Parse(o.Scaling)
	if err != nil {
		return nil, err
	}
	return tts.Search{Model: model, Plan: plan, Limits: limits, Verifiers: r.Verifiers(model)}, nil
}
