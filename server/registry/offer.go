package registry

import (
	"maps"
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// offer is what a user interface may offer for a generator.
type offer struct {
	Demo      bool             `json:"demo"`      // it is built into the program and knows little
	Methods   []scaling.Method `json:"methods"`   // of test-time scaling that work with it
	Verifiers []string         `json:"verifiers"` // the default first; then its own scores
	Presets   []string         `json:"presets"`   // that may follow its name
	MaxTurns  int              `json:"max_turns,omitempty"`
	Thinking  bool             `json:"thinking"` // its answers may begin with thinking
	Defaults  defaults         `json:"defaults"`
}

// defaults hold for requests that say nothing else.
type defaults struct {
	Temperature     float32 `json:"temperature"`
	MaxTokens       *int    `json:"max_tokens"` // null: up to the context's end
	ReasoningFormat string  `json:"reasoning_format"`
	Scaling         string  `json:"scaling"` // empty: none
}

// offer returns what m can do with the reward models and presets of r.
func (r *Registry) offer(m *Model, set *Settings) *offer {
	o := &offer{
		Demo: m.Demo, MaxTurns: m.MaxTurns, Thinking: m.Thinks(),
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
