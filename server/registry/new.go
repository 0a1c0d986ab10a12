package registry

import (
	"fmt"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
	"github.com/lutra-lm/lutra/tts/reward"
)

// Served is a model under the names that requests may use for it.
type Served struct {
	Model   *tts.Model
	Reward  *reward.Scorer  // of a model that scores answers; nil: the model writes them
	Embed   *embed.Embedder // of a model that makes vectors of texts
	Rank    embed.Scorer    // of a model that scores documents; embedders do too
	Aliases []string        // beside Model.Name
	Demo    bool            // it is one of those built into the program
}

// New registers models. The first generator answers for "default" and for
// requests that name none. Reward models score answers of all generators whose tokens
// they read, the first by default.
func New(set *Settings, served ...Served) (*Registry, error) {
	r := &Registry{byName: make(map[string]*Model), searching: make(map[string]bool), presets: set.Presets, created: time.Now().Unix()}
	for _, v := range served {
		m := &Model{Model: v.Model, Reward: v.Reward, Embed: v.Embed, Rank: v.Rank, demo: v.Demo}
		var err error
		if m.Fingerprint, err = Fingerprint(v.Model); err != nil {
			return nil, fmt.Errorf("server: model %q: %w", v.Model.Name, err)
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
			continue
		}
		if r.generator == nil {
			r.generator = m
		}
		m.Verifiers = reward.VerifiersFor(m.Model, r.rewards)
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
	}
	if len(r.Models) == 0 || r.generator == nil && !slices.ContainsFunc(r.Models, func(m *Model) bool { return m.Rank != nil }) {
		return nil, fmt.Errorf("server: no models to serve")
	}
	return r, nil
}
