package models

import (
	"maps"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/models/weights"
)

// mixture is a layer's mixture of experts (Shazeer et al. 2017, "Outrageously Large
// Neural Networks", §2): of many gated feed-forwards each row takes a few, which a
// router chooses. From normed rows h to what it adds to the residual stream:
//
//	p = softmax(h·Wrouter)                      or sigmoid
//	y = Σ weight(p, e)·expert(h, e)             over the e of the largest p
//	    + sigmoid(h·g)·shared(h)                where the architecture has one
//
// Experts are products of their own: one that no row of a step chose is not read.
type mixture struct {
	routing
	router  kernels.Linear // [experts][Hidden], in float32
	bias    []float32      // [experts] of what it makes; nil: none
	experts []expert
	store   *expertStore // has the experts of all layers, if they are not in experts
	layer   int
	width   int // of what gate and up make
	// Biases of what the experts' matrices make, [experts] × [2·width] and [Hidden]; nil:
	// none.
	gateUpBias, downBias []float32
	activation           gatedUnit
	shared               expert           // of all rows
	sharedWidth          int              // 0: there is none
	sharedGate           []float32        // [Hidden] g; nil: one in place of the sigmoid
	packings             []matrix.Packing // of the experts' matrices that read h
	taken                []bool           // [experts] an ExpertBackend computes them; nil: there is none

	routed func(experts []int32, weights []float32) // LoadOptions.Routed of this layer; may be nil
}

// expert is one gated feed-forward.
type expert struct{ gateUp, down weights.Stacked }

// maxExperts bounds the experts of a layer.
const maxExperts = 1 << 12

// expertKeys are the hyper-parameters of mixtures that are read.
var expertKeys = []string{
	"expert_count", "expert_used_count", "expert_feed_forward_length", "expert_shared_feed_forward_length", "expert_shared_count",
	"expert_gating_func", "expert_weights_norm", "expert_weights_scale",
}

// mixtureShape reads what all mixtures of the model have in common: zero of a model
// without any.
func (l *loader) mixtureShape() (r routing) {
	c, v := &l.cfg, l.arch.ffn.mixture
	if l.Err() != nil {
		return r
	}
	if v == nil {
		if n := l.count("expert_count", 0, maxDim, 0); n > 0 {
			l.Fail("%s is %d: mixtures of experts are not supported for this architecture", l.key("expert_count"), n)
		}
		return r
	}
	if v.optional {
		c.Experts = l.count("expert_count", 0, maxExperts, 0)
	} else {
		c.Experts = l.count("expert_count", 1, maxExperts, required)
	}
	if l.Err() != nil || c.Experts == 0 {
		return r
	}
	l.checkMixture()
	c.ExpertsUsed = l.count("expert_used_count", 1, c.Experts, required)
	l.expertFFN = c.FFN
	if v.perChosen && c.ExpertsUsed > 0 {
		l.expertFFN = max(1, c.FFN/c.ExpertsUsed)
	}
	l.expertFFN = l.count("expert_feed_forward_length", 1, maxDim, l.expertFFN)
	c.ExpertFFN = l.expertFFN
	switch v.shared {
	case sharedIfSaid:
		l.sharedFFN = l.count("expert_shared_feed_forward_length", 0, maxDim, 0)
	case sharedGated:
		if l.sharedFFN = l.count("expert_shared_feed_forward_length", 0, maxDim, c.FFN); l.sharedFFN == 0 {
			l.sharedFFN = c.FFN
		}
	}
	r = routing{experts: c.Experts, chosen: c.ExpertsUsed, gating: softmaxGating, normed: !v.unnormed, scale: 1}
	if n := l.count("expert_gating_func", 0, 3, 0); n > 0 {
		r.gating = gating(n)
	}
	if v.mixes && l.asAuthors() {
		if r.gating = sparsemixerGating; r.chosen != 2 {
			l.Fail("%s is %d: sparsemixer chooses 2", l.key("expert_used_count"), r.chosen)
		}
	}
	if norm, ok := l.file.Metadata[l.key("expert_weights_norm")]; ok {
		if r.normed, ok = norm.(bool); !ok {
			l.Fail("%s is %v, want true or false", l.key("expert_weights_norm"), norm)
		}
	}
	if l.positive("expert_weights_scale") > 0 {
		r.scale = l.multiplier("expert_weights_scale")
	}
	if b, ok := l.opt.Backend.(ExpertBackend); ok && l.Err() == nil {
		if err := b.Mixtures(MixtureShape{c.Name, c.Layers, r.experts, r.chosen, c.Hidden, l.expertFFN}); err != nil {
			l.Fail("%w", err)
		}
	}
	return r
}

// authorsKey has a file of phimoe computed as its authors do: with sparsemixer, and
// LayerNorm in place of RMSNorm with a bias. Files are made for llama.cpp, which does
// neither.
const authorsKey = "lutra.phimoe.authors"

// asAuthors tells whether the file asks for that.
func (l *loader) asAuthors() bool {
	value, ok := l.file.Metadata[authorsKey]
	if !ok {
		return false
	}
	asked, ok := value.(bool)
	if !ok {
		l.Fail("%s is %v, want true or false", authorsKey, value)
	}
	return asked
}

// checkMixture fails on hyper-parameters that change what a model computes and are not
// known.
func (l *loader) checkMixture() {
	for _, key := range slices.Sorted(maps.Keys(l.file.Metadata)) {
		name, ok := strings.CutPrefix(key, l.key(""))
		if ok && strings.HasPrefix(name, "expert_") && !slices.Contains(expertKeys, name) {
			l.Fail("%s is not supported", key)
		}
	}
	for _, key := range []struct {
		name string
		most int
	}{{"leading_dense_block_count", 0}, {"moe_every_n_layers", 1}, {"interleave_moe_layer_step", 1}} {
		if n := l.count(key.name, 0, maxDim, 0); n > key.most {
			l.Fail("%s is %d: models in which only some layers are mixtures are not supported", l.key(key.name), n)
		}
	}
	if x := l.number("attention.clamp_kqv", 0); x > 0 {
		l.Fail("%s is %v: clamped queries, keys and values are not supported", l.key("attention.clamp_kqv"), x)
	}
}

// mixture loads that of layer i, whose experts are in a store if there is one.
func (l *loader) mixture(i int, r routing, store *expertStore) *mixture {
	c, name := &l.cfg, layerNames(i)
	m := &mixture{routing: r, activation: l.arch.ffn.activation, store: store, layer: i, width: l.expertFFN, sharedWidth: l.sharedFFN}
	backend, _ := l.opt.Backend.(ExpertBackend)
	m.router = l.Wide(name("ffn_gate_inp.weight"), r.experts, c.Hidden)
	if l.arch.ffn.mixture.biases {
		m.bias = l.Vector(name("ffn_gate_inp.bias"), r.experts)
		l.expertBiases(m, name)
	}
	for e := 0; e < r.experts && store == nil && l.Err() == nil; e++ {
		sent := l.Sent()
		if backend != nil {
			l.Place(backend.Expert(i, e))
		}
		x := l.packExpert(name, e)
		for _, packing := range x.gateUp.Packings {
			if !slices.Contains(m.packings, packing) {
				m.packings = append(m.packings, packing)
			}
		}
		m.experts = append(m.experts, x)
		if backend != nil {
			l.Place(backend)
			m.taken = append(m.taken, l.Sent() > sent && x.gateUp.Device() != nil)
		}
	}
	if n := l.sharedFFN; n > 0 {
		gate, up := l.Packed(name("ffn_gate_shexp.weight"), n, c.Hidden), l.Packed(name("ffn_up_shexp.weight"), n, c.Hidden)
		m.shared = expert{gateUp: l.Stack(gate, up), down: l.Stack(l.Packed(name("ffn_down_shexp.weight"), c.Hidden, n))}
		if l.arch.ffn.mixture.shared == sharedGated {
			m.sharedGate = l.Vector(name("ffn_gate_inp_shexp.weight"), c.Hidden)
		}
	}
	if see := l.opt.Routed; see != nil {
		m.routed = func(experts []int32, weights []float32) { see(i, experts, weights) }
	}
	return m
}
