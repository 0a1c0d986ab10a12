package fields

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/profile"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/search"
)

// Generator finds the model that writes the answer to a request, and the search that it asks
// for. Where that says what to reach instead of how, method, sizes and, as far as the
// operator lists any, the model are chosen here.
func Generator(c *api.Call) (*api.Ask, error) {
	a, err := c.Generator()
	if err != nil {
		return nil, err
	}
	f := Reader{c.Body}
	a.Asked = f.Scaling(c.Header.Get(api.ScalingHeader), a.Preset, c.Standard)
	if f.Err != nil {
		return nil, f.Err
	}
	switch {
	case a.Asked != nil && a.Asked.Plan.Unchosen():
		err = choose(c, a, *a.Asked.Plan)
		if err != nil {
			return nil, PlanFault(err, a.Asked.Param)
		}
	case a.Asked == nil && c.Standard != nil && c.Standard.Unchosen():
		_ = choose(c, a, *c.Standard) // a default is not a demand
	}
	return a, nil
}

// choose sets a.Choice, and the model.
func choose(c *api.Call, a *api.Ask, plan scaling.Plan) error {
	if err := plan.Validate(c.Limits); err != nil {
		return err
	}
	choices := choicesOf(c)
	models := alternates(c, a.Model)
	candidates := make([]profile.Candidate, len(models))
	for i, m := range models {
		candidates[i] = CandidateOf(c, m, choices)
	}
	now := time.Now()
	choice, err := profile.Choose(candidates, plan, plan.Deadline-now.Sub(c.Start), now)
	if err != nil {
		return err
	}
	if m := models[choice.Model]; m != a.Model {
		if _, err := c.Hold(c, m.Name); err != nil {
			return err
		}
		a.Model, a.Name = m, m.Name
	}
	a.Choice = choice
	return nil
}

// CandidateOf describes a model that may answer a request for so many choices.
func CandidateOf(c *api.Call, m *registry.Model, choices int) profile.Candidate {
	return profile.Candidate{Name: m.Name, Curve: m.Curve, Pace: m.Engine.Pace, Forecast: m.Forecast, Works: func(p scaling.Plan) bool {
		s := search.Search{Model: m.Model, Plan: p, Limits: c.Limits, Verifiers: c.Verifiers(m)}
		_, err := s.Check(c.Context(), &tts.Request{N: choices, Sampling: sampling.Params{Temperature: 1}})
		return err == nil
	}}
}

// alternates returns the models that may answer a request for m, which comes first.
func alternates(c *api.Call, m *registry.Model) []*registry.Model {
	list := []*registry.Model{m}
	if m.Thinking != nil || !slices.Contains(c.Alternates, m.Name) {
		return list
	}
	set, err := c.Models()
	if err != nil {
		return list
	}
	loaded := set.Registry()
	for _, name := range c.Alternates {
		if o := loaded.Named(name); o != nil && o.Writes() && c.Key.May(append(slices.Clip(o.Aliases), o.Name)...) && !slices.ContainsFunc(list, func(l *registry.Model) bool { return l.Model == o.Model }) {
			list = append(list, o)
		}
	}
	return list
}

// choicesOf returns the choices that a request wants, as far as they can be read: what is
// wrong with them is said later.
func choicesOf(c *api.Call) int {
	n := 1
	if raw := c.Body.Raw("n"); raw != nil && json.Unmarshal(raw, &n) != nil {
		return 1
	}
	return n
}

// learns tells the model's forecast what the answer took.
func learns(c *api.Call, a *api.Ask) tts.Filter {
	return func(e tts.Event, emit func(tts.Event) bool) bool {
		if _, ended := e.What.(*tts.Outcome); ended {
			now := time.Now()
			a.Choice.Took(a.Model.Forecast, now.Sub(c.Start), now)
		}
		return emit(e)
	}
}
