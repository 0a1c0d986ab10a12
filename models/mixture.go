package models

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/load"
)

// mixture is a layer's mixture of experts (Shazeer et al. 2017, "Outrageously Large
// Neural Networks", §2): of many gated feed-forwards each row takes a few, which a
// router chooses. From normed rows h to what it adds to the residual stream:
//
//	p = softmax(h·Wrouter)                      or sigmoid
//	y = Σ weight(p, e)·expert(h, e)             over the e of the largest p, or p + b
//	    + sigmoid(h·g)·shared(h)                where the architecture has one
//
// Experts are products of their own: one that no row of a step chose is not read.
type mixture struct {
	expertSet
	pass *expertPass // of all mixtures of the model
}

// run sets y.
func (m *mixture) run(s *rowShard) { m.pass.run(&m.expertSet, s) }

// mixtureSpec describes the mixtures of a model.
type mixtureSpec struct {
	routing
	width       int  // of experts
	sharedWidth int  // of the expert that all rows take; 0: there is none
	reads       int  // numbers that an expert reads and makes
	ungated     bool // experts have no gates
	beside      bool // layers with mixtures have feed-forwards too
}

// maxExperts bounds the experts of a layer.
const maxExperts = 1 << 12

// expertKeys are the hyper-parameters of mixtures that are read.
var expertKeys = []string{
	"expert_count", "expert_used_count", "expert_feed_forward_length", "expert_shared_feed_forward_length", "expert_shared_count",
	"expert_gating_func", "expert_weights_norm", "expert_weights_scale", "expert_group_count", "expert_group_used_count",
}

// readMixture reads the hyper-parameters of mixtures, if layers have any, and which layers have.
func readMixture(h *load.Header, m *spec) {
	a, x := m.arch.ffn.mixture, &m.mixture
	if m.Experts = readExperts(h, a); h.Err() != nil || m.Experts == 0 {
		return
	}
	checkMixture(h, a)
	m.ExpertsUsed = h.Int("expert_used_count", 1, m.Experts, load.Required)
	width := m.FFN
	if a.perChosen && m.ExpertsUsed > 0 {
		width = max(1, m.FFN/m.ExpertsUsed)
	}
	m.ExpertFFN = h.Int("expert_feed_forward_length", 1, load.MaxDim, width)
	x.width, x.reads, x.ungated, x.beside = m.ExpertFFN, m.Hidden, m.arch.ffn.ungated, a.beside
	if a.latent {
		x.reads = h.Int("moe_latent_size", 1, load.MaxDim, m.Hidden)
	}
	if a.dense {
		m.DenseLayers = h.Int("leading_dense_block_count", 0, m.Layers-1, 0)
	}
	x.sharedWidth = readSharedWidth(h, m)
	x.routing = readRouting(h, m)
	for i := range m.layers {
		y := &m.layers[i]
		y.mixes = i >= m.DenseLayers
		if m.arch.onePart {
			y.mixes = y.mixes && y.alone && h.HasTensor(y.tensor("ffn_gate_inp.weight"))
		}
	}
}

// mixtures counts the layers that have one.
func (m *spec) mixtures() (n int) {
	for i := range m.layers {
		if m.layers[i].mixes {
			n++
		}
	}
	return n
}

// readExperts reads how many experts a layer has, 0 where layers have feed-forwards.
func readExperts(h *load.Header, a *mixtureTraits) int {
	switch {
	case a == nil:
		if n := h.Int("expert_count", 0, load.MaxDim, 0); n > 0 {
			h.Fail("%s is %d: mixtures of experts are not supported for this architecture", h.Key("expert_count"), n)
		}
		return 0
	case a.optional:
		return h.Int("expert_count", 0, maxExperts, 0)
	}
	return h.Int("expert_count", 1, maxExperts, load.Required)
}

// readSharedWidth reads the width of the expert that all rows take; 0: there is none.
func readSharedWidth(h *load.Header, m *spec) int {
	const name = "expert_shared_feed_forward_length"
	switch m.arch.ffn.mixture.shared {
	case sharedIfSaid:
		return h.Int(name, 0, load.MaxDim, 0)
	case sharedGated:
		return cmp.Or(h.Int(name, 0, load.MaxDim, m.FFN), m.FFN)
	case sharedCounted:
		return h.Int("expert_shared_count", 0, load.MaxDim/m.ExpertFFN, 1) * m.ExpertFFN
	}
	return 0
}

// checkMixture fails on hyper-parameters that change what a model computes and are not
// known.
func checkMixture(h *load.Header, a *mixtureTraits) {
	for _, key := range slices.Sorted(maps.Keys(h.File.Metadata)) {
		name, ok := strings.CutPrefix(key, h.Key(""))
		if ok && strings.HasPrefix(name, "expert_") && !slices.Contains(expertKeys, name) {
			h.Fail("%s is not supported", key)
		}
	}
	for _, key := range []struct {
		name string
		most int
	}{{"leading_dense_block_count", 0}, {"moe_every_n_layers", 1}, {"interleave_moe_layer_step", 1}} {
		if n := h.Int(key.name, 0, load.MaxDim, 0); n > key.most && !(a.dense && key.name == "leading_dense_block_count") {
			h.Fail("%s is %d: models in which only some layers are mixtures are not supported", h.Key(key.name), n)
		}
	}
	const clamp = "swiglu_clamp_exp" // one number, or one a layer
	limits, ok := h.File.Metadata.Floats(h.Key(clamp))
	if !ok {
		limits = []float32{float32(h.Float(clamp, float64(a.clamp)))}
	}
	for _, x := range limits {
		if x != a.clamp {
			h.Fail("%s is %v: only %v is supported", h.Key(clamp), x, a.clamp)
		}
	}
	if x := h.Float("attention.clamp_kqv", 0); x > 0 {
		h.Fail("%s is %v: clamped queries, keys and values are not supported", h.Key("attention.clamp_kqv"), x)
	}
}

// mixtures has what the mixtures of a model share.
type mixtures struct {
	pass     *expertPass
	matrices *expertMatrices
	store    *expertStore                                        // nil: all experts are in memory
	kept     []float32                                           // memory for what feed-forwards beside mixtures make
	routed   func(layer int, experts []int32, weights []float32) // LoadOptions.Routed; may be nil
}

// loadMixture loads the mixture of a layer.
func loadMixture(t *tensors, m *spec, y *layerSpec, all *mixtures) *mixture {
	a, p := m.arch.ffn.mixture, &m.mixture
	x := &mixture{pass: all.pass, expertSet: expertSet{
		routing: p.routing, unit: m.unit, ungated: p.ungated, layer: y.index, width: p.width, reads: p.reads,
	}}
	x.store = all.store
	x.router = product{Stacked: t.Wide(y.tensor("ffn_gate_inp.weight"), p.experts, m.Hidden), cols: m.Hidden}
	x.router.on = t.adapterSite(m.Hidden, x.router.Rows...)
	x.prefer = loadPreference(t, m, y)
	if a.biases {
		x.bias = t.Vector(y.tensor("ffn_gate_inp.bias"), p.experts)
		x.gateUpBias, x.downBias = all.matrices.biases(y)
	}
	if all.store == nil {
		x.pack(t, y, all.matrices)
	}
	x.onUp, x.onDown = all.matrices.adapterSites(y)
	if x.reads != m.Hidden {
		x.latent = loadLatentExperts(t, m, y)
	}
	if p.sharedWidth > 0 {
		x.shared = loadSharedExpert(t, m, y)
		if x.taken != nil && t.Err() == nil {
			x.shared.taken = t.accelerator.GatedExpert(y.index, SharedExpert, x.gatedOf(&x.shared.expert, p.sharedWidth))
		}
	}
	if see := all.routed; see != nil {
		x.routed = func(experts []int32, weights []float32) { see(y.index, experts, weights) }
	}
	return x
}

// loadPreference loads what is added to the probabilities of experts to choose by; nil: nothing.
func loadPreference(t *tensors, m *spec, y *layerSpec) (prefer []float32) {
	name, n := y.tensor("exp_probs_b.bias"), m.mixture.experts
	switch m.arch.ffn.mixture.prefers {
	case preferred:
		return t.Vector(name, n)
	case preferredOfSoftmax:
		return t.OptionalVector(name, n)
	case preferredIfStored:
		if prefer = t.OptionalVector(name, n); prefer != nil && m.mixture.gating != sigmoidGating {
			t.Fail("tensor %s: experts are chosen by it where %s.expert_gating_func is %d", name, m.Arch, sigmoidGating)
		}
	}
	return prefer
}

// pack packs all experts of a layer, for the accelerator if it takes them.
func (m *expertSet) pack(t *tensors, y *layerSpec, from *expertMatrices) {
	accelerator := t.accelerator
	if accelerator != nil && m.ungated { // which it does not know
		t.Place(nil)
		defer t.Place(accelerator)
		accelerator = nil
	}
	for e := 0; e < from.count && t.Err() == nil; e++ {
		sent := t.Sent
		if accelerator != nil {
			t.Place(accelerator.Expert(y.index, e))
		}
		x := from.pack(y, e)
		for _, packing := range x.gateUp.Packings {
			if !slices.Contains(m.packings, packing) {
				m.packings = append(m.packings, packing)
			}
		}
		m.list = append(m.list, x)
		if accelerator != nil {
			t.Place(accelerator)
			m.taken = append(m.taken, t.Sent > sent && t.Err() == nil && (accelerator.GatedExpert(y.index, e, m.gated(e)) || x.gateUp.Device() != nil))
		}
	}
}

// loadSharedExpert loads the expert of a layer that all rows take.
func loadSharedExpert(t *tensors, m *spec, y *layerSpec) (x sharedExpert) {
	x.width = m.mixture.sharedWidth
	var made []*load.Stored
	for _, part := range m.mixture.made() {
		made = append(made, t.Whole(y.tensor("ffn_"+part+"_shexp.weight"), x.width, m.Hidden))
	}
	x.gateUp, x.down = t.Stack(made...), t.Stack(t.Whole(y.tensor("ffn_down_shexp.weight"), m.Hidden, x.width))
	x.onUp, x.onDown = t.adapterSite(m.Hidden, x.gateUp.Rows...), t.adapterSite(x.width, x.down.Rows...)
	if m.arch.ffn.mixture.shared == sharedGated {
		x.gate = t.Vector(y.tensor("ffn_gate_inp_shexp.weight"), m.Hidden)
	}
	return x
}
