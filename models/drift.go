package models

import (
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/kv"
)

// findDrifts gives layers whose keys have biases that rotate their drift. Norms after the biases would change them, and
// layers that read the keys of others know nothing of them.
func (m *decoder) findDrifts() {
	var turns [2]attention.Turns
	for i := range m.layers {
		a, ok := m.layers[i].mixer.(*selfAttention)
		if !ok || m.spec.SharedLayers > 0 || a.kHeads.bias == nil || a.kHeads.norm != nil || a.kHeads.rope == ropeNone || a.kHeads.temper.scale != 0 {
			continue
		}
		r, t := &m.ropes[a.kHeads.ropeIndex], &turns[a.kHeads.ropeIndex]
		if *t == nil {
			*t = attention.NewTurns(r.pairs(), m.spec.Context, r.compute)
		}
		a.mask.Drift = attention.NewDrift(a.kHeads.bias, a.kHeads.dim, a.kHeads.rope == ropeHalves, r.freq, *t)
	}
}

// settle takes their drift from the keys of a position, if the cache holds them without.
func (a *selfAttention) settle(cache *kv.Cache, keys []float32, position int) {
	if drift := a.mask.DriftIn(cache); drift != nil {
		drift.Settle(keys, position)
	}
}
