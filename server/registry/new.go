package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/profile"
	"github.com/lutra-lm/lutra/tts/reward"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/search"
)

// New registers models. The first generator answers for "default" and for
// requests that name none. Reward models score answers of all generators whose tokens
// they read, the first by default.
func New(set *Settings, served ...Served) (*Registry, error) {
	r := &Registry{byName: make(map[string]*Model), searching: make(map[string]bool), presets: set.Presets, created: set.Created.Unix()}
	if set.Created.IsZero() {
		r.created = time.Now().Unix()
	}
	for _, v := range served {
		m := &Model{Served: v}
		if m.Fingerprint == "" {
			var err error
			if m.Fingerprint, err = Fingerprint(v.Model); err != nil {
				return nil, fmt.Errorf("server: model %q: %w", v.Model.Name, err)
			}
		}
		r.Models = append(r.Models, m)
		for _, name := range append([]string{v.Model.Name}, v.Aliases...) {
			if err := r.add(name, m); err != nil {
				return nil, err
			}
		}
	}
	for _, m := range r.Models {
		if !m.Writes() {
			if err := r.addAdapters(m); err != nil {
				return nil, err
			}
			continue
		}
		if r.generator == nil {
			r.generator = m
		}
		m.Verifiers = reward.VerifiersFor(m.Model, r.rewards)
		m.Verifiers.Add(set.Scorers)
		if err := m.profiled(set.Profiles); err != nil {
			return nil, fmt.Errorf("server: model %q: %w", m.Name, err)
		}
		m.offer = r.offer(m, set)
		for _, name := range m.offer.Presets {
			if err := r.add(m.Name+"+"+name, m); err != nil {
				return nil, err
			}
			r.searching[m.Name+"+"+name] = true
		}
		if err := r.addThinking(m); err != nil {
			return nil, err
		}
		if err := r.addAdapters(m); err != nil {
			return nil, err
		}
	}
	if len(r.Models) == 0 || r.generator == nil && !slices.ContainsFunc(r.Models, func(m *Model) bool { return m.Rank != nil }) {
		return nil, fmt.Errorf("server: no models to serve")
	}
	return r, nil
}

// offer returns what m can do with the reward models and presets of r.
func (r *Registry) offer(m *Model, set *Settings) *offer {
	o := &offer{
		Demo: m.Demo, MaxTurns: m.MaxTurns, Thinking: m.Thinks(),
		Methods: []scaling.Method{}, Verifiers: []string{}, Presets: []string{},
		Defaults: defaults{Config: m.Defaults(sampling.Config{}).Or(sampling.Plain()), ReasoningFormat: set.ReasoningFormat, Scaling: set.Scaling},
	}
	works := func(p scaling.Plan) bool {
		if p.Unchosen() {
			return m.Curve != nil
		}
		s := search.Search{Model: m.Model, Plan: p, Limits: set.Limits, Verifiers: m.Verifiers}
		_, err := s.Check(context.Background(), &tts.Request{Sampling: sampling.Params{Temperature: 1}})
		return err == nil
	}
	for _, method := range scaling.Methods() {
		if works(scaling.Plan{Method: method}) {
			o.Methods = append(o.Methods, method)
		}
	}
	for _, p := range m.Probes { // the first is the default
		o.probes = append(o.probes, p.Name)
	}
	o.Verifiers = append(o.Verifiers, o.probes...)
	for _, name := range r.names { // likewise, where there are none
		if judge := r.byName[name]; m.Verifiers.ByName[name] != nil && name == judge.Name {
			o.Verifiers = append(o.Verifiers, name)
		}
	}
	o.Verifiers = append(o.Verifiers, slices.Sorted(maps.Keys(set.Scorers))...)
	o.Verifiers = append(o.Verifiers, scaling.VerifierSelf, scaling.VerifierLogprob, scaling.VerifierSelfCertainty)
	for _, name := range slices.Sorted(maps.Keys(r.presets)) {
		if works(r.presets[name]) {
			o.Presets = append(o.Presets, name)
		}
	}
	return o
}

// profiled finds the curve of m.
func (m *Model) profiled(profiles []*profile.Profile) error {
	m.Forecast = &profile.Forecast{}
	for _, p := range profiles {
		if !p.Has(m.Name) {
			continue
		}
		sketch, err := m.Identity.Sketch()
		if err != nil {
			return err
		}
		if m.Curve = p.Of(m.Name, sketch); m.Curve != nil {
			return nil
		}
	}
	return nil
}
