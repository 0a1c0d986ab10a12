package chat

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/internal/engines"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/search"
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

// plan returns the search as it is written, without defaults.
func (o *Options) plan() scaling.Plan {
	if o.Scaling == "" {
		return scaling.Plan{}
	}
	plan, _ := scaling.Parse(o.Scaling) // CanSearch has tried it
	return plan
}

// search uses a plan that can be carried out.
func (c *session) search(plan string) error {
	if plan == NoScaling || plan == "off" {
		plan = ""
	} else if err := c.CanSearch(plan); err != nil {
		return err
	}
	c.options.Scaling = plan
	return nil
}

// setMethod changes the method of the search, and keeps how many candidates it has.
func setMethod(c *session, value string) error {
	plan := value
	if n := c.options.plan().N; n > 0 && value != NoScaling && value != byDefault {
		plan += ";n=" + strconv.Itoa(n)
	}
	if value == byDefault {
		plan = NoScaling
	}
	return c.search(plan)
}

// setOfPlan changes a setting of the search.
func (c *session) setOfPlan(key, value string) error {
	plan := c.options.Scaling
	if plan == "" {
		return errors.New("there is no search: /search METHOD chooses one")
	}
	// A preset such as beam16x4 is a method with settings, of which one is to change.
	if short, ok := scaling.Preset(plan); ok {
		plan = string(short.Method)
		for name, n := range map[string]int{"n": short.N, "width": short.Width} {
			if n > 0 && name != key {
				plan += fmt.Sprintf(";%s=%d", name, n)
			}
		}
	}
	plan = without(plan, key)
	if value != byDefault {
		plan += ";" + key + "=" + value
	}
	return c.search(plan)
}

// without returns a written plan without the settings of a key.
func without(plan, key string) string {
	var kept []string
	quoted, from := false, 0
	for i := 0; i <= len(plan); i++ {
		switch {
		case i < len(plan) && plan[i] == '"' && plan[i-1] != '\\':
			quoted = !quoted
		case i == len(plan) || plan[i] == ';' && !quoted:
			if name, _, ok := strings.Cut(plan[from:i], "="); !ok || strings.TrimSpace(name) != key {
				kept = append(kept, plan[from:i])
			}
			from = i + 1
		}
	}
	return strings.Join(kept, ";")
}

// written returns the plan of a method, a number of candidates and a width, as /search takes
// them, or of one word.
func written(words []string) (string, error) {
	plan := words[0]
	for i, key := range []string{"n", "width"} {
		if i+1 < len(words) {
			plan += ";" + key + "=" + words[i+1]
		}
	}
	if len(words) > 3 {
		return "", errors.New("want a plan such as beam16x4, or METHOD N WIDTH")
	}
	return plan, nil
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
	return search.Search{Model: model, Plan: plan, Limits: limits, Verifiers: r.Verifiers(model)}, nil
}
