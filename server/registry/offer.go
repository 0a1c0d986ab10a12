package registry

import (
	"maps"
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// offer is what m can do with the reward models and presets of r.
func (r *Registry) offer(m *Model, set *Settings) *offer {
	o := &offer{
		Demo: m.demo, MaxTurns: m.MaxTurns, Thinking: m.Thinks(),
		Methods: []scaling.Method{}, Verifiers: []string{}, Presets: []string{},
		Defaults: defaults{Temperature: 1, ReasoningFormat: set.ReasoningFormat, Scaling: set.Scaling},
	}
	works := func(p scaling.Plan) bool {
		search := tts.Search{Model: m.Model, Plan: p, Limits: set.Limits, Verifiers: m.Verifiers}
		_, err := search.Check(&tts.Request{Sampling: sampling.Params{Temperature: 1}})
		return err == nil
	}
	for _, method := range scaling.Methods() {
		if works(scaling.Plan{Method: method}) {
			o.Methods = append(o.Methods, method)
		}
	}
	for _, name := range r.names { // the first is the default
		if judge := r.byName[name]; m.Verifiers.ByName[name] != nil && name == judge.Name {
			o.Verifiers = append(o.Verifiers, name)
		}
	}
	o.Verifiers = append(o.Verifiers, scaling.VerifierLogprob, scaling.VerifierSelfCertainty)
	for _, name := range slices.Sorted(maps.Keys(r.presets)) {
		if works(r.presets[name]) {
			o.Presets = append(o.Presets, name)
		}
	}
	return o
}
