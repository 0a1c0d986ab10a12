package models

import (
	"maps"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/weights"
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

// mixtureParams are the hyper-parameters that all mixtures of a model have in common.
type mixtureParams struct {
	routing
	width, sharedWidth int // of experts, and of the one that all rows take; 0: there is none
}

// maxExperts bounds the experts of a layer.
const maxExperts = 1 << 12

// expertKeys are the hyper-parameters of mixtures that are read.
var expertKeys = []string{
	"expert_count", "expert_used_count", "expert_feed_forward_length", "expert_shared_feed_forward_length", "expert_shared_count",
	"expert_gating_func", "expert_weights_norm", "expert_weights_scale", "expert_group_count", "expert_group_used_count",
}

// mixtureParams reads the hyper-parameters of mixtures: zero of a model without any.
func (l *loader) mixtureParams() (p mixtureParams) {
	c, t := &l.cfg, l.arch.ffn.mixture
	if l.Err() != nil {
		return p
	}
	if c.Experts = l.expertCount(); l.Err() != nil || c.Experts == 0 {
		return p
	}
	l.checkMixture()
	c.beside = t.beside
	c.ExpertsUsed = l.count("expert_used_count", 1, c.Experts, required)
	width := c.FFN
	if t.perChosen && c.ExpertsUsed > 0 {
		width = max(1, c.FFN/c.ExpertsUsed)
	}
	c.ExpertFFN, c.reads = l.count("expert_feed_forward_length", 1, maxDim, width), c.Hidden
	if t.latent {
		c.reads = l.count("moe_latent_size", 1, maxDim, c.Hidden)
	}
	if t.dense {
		c.DenseLayers = l.count("leading_dense_block_count", 0, c.Layers-1, 0)
	}
	p = mixtureParams{width: c.ExpertFFN, sharedWidth: l.sharedWidth(), routing: l.routing()}
	if b, ok := l.opt.Backend.(Accelerator); ok && l.Err() == nil && !l.arch.ffn.ungated {
		if err := b.Mixtures(MixtureShape{c.Name, c.Layers, c.DenseLayers, p.experts, p.chosen, c.Hidden, p.width}); err != nil {
			l.Fail("%w", err)
		}
	}
	return p
}

// mixes tells whether layer i has a mixture.
func (l *loader) mixes(i int) bool {
	if l.arch.onePart && (!l.rowsAlone(i) || l.file.Tensor(layerNames(i)("ffn_gate_inp.weight")) == nil) {
		return false
	}
	return l.cfg.Experts > 0 && i >= l.cfg.DenseLayers
}

// mixtures counts the layers that have one.
func (l *loader) mixtures() (n int) {
	for i := range l.cfg.Layers {
		if l.mixes(i) {
			n++
		}
	}
	return n
}

// expertCount reads how many experts a layer has, 0 where layers have feed-forwards.
func (l *loader) expertCount() int {
	switch t := l.arch.ffn.mixture; {
	case t == nil:
		if n := l.count("expert_count", 0, maxDim, 0); n > 0 {
			l.Fail("%s is %d: mixtures of experts are not supported for this architecture", l.key("expert_count"), n)
		}
		return 0
	case t.optional:
		return l.count("expert_count", 0, maxExperts, 0)
	}
	return l.count("expert_count", 1, maxExperts, required)
}

// sharedWidth reads the width of the expert that all rows take; 0: there is none.
func (l *loader) sharedWidth() int {
	switch l.arch.ffn.mixture.shared {
	case sharedIfSaid:
		return l.count("expert_shared_feed_forward_length", 0, maxDim, 0)
	case sharedGated:
		if n := l.count("expert_shared_feed_forward_length", 0, maxDim, l.cfg.FFN); n > 0 {
			return n
		}
		return l.cfg.FFN
	case sharedCounted:
		return l.count("expert_shared_count", 0, maxDim/l.cfg.ExpertFFN, 1) * l.cfg.ExpertFFN
	}
	return 0
}

// routing reads how rows choose experts, whose numbers are known.
func (l *loader) routing() routing {
	t := l.arch.ffn.mixture
	r := routing{experts: l.cfg.Experts, chosen: l.cfg.ExpertsUsed, gating: softmaxGating, normed: !t.unnormed, scale: 1}
	// Older files of GLM-4.7-Flash do not say.
	if t.prefers == preferred || t.prefers == preferredIfStored && l.file.Tensor(layerNames(l.cfg.DenseLayers)("exp_probs_b.bias")) != nil {
		r.gating = sigmoidGating
	}
	if n := l.count("expert_gating_func", 0, 3, 0); n > 0 {
		if r.gating = gating(n); t.prefers == preferred && r.gating != sigmoidGating {
			l.Fail("%s is %d: only %d is supported for this architecture", l.key("expert_gating_func"), n, sigmoidGating)
		}
	}
	if t.mixes && l.asAuthors() {
		if r.gating = sparsemixerGating; r.chosen != 2 {
			l.Fail("%s is %d: sparsemixer chooses 2", l.key("expert_used_count"), r.chosen)
		}
	}
	if norm, ok := l.file.Metadata[l.key("expert_weights_norm")]; ok {
		if r.normed, ok = norm.(bool); !ok {
			l.Fail("%s is %v, want true or false", l.key("expert_weights_norm"), norm)
		}
	}
	l.expertGroups(&r)
	if l.positive("expert_weights_scale") > 0 {
		r.scale = l.multiplier("expert_weights_scale")
	}
	return r
}

// maxGroups bounds the groups of experts.
const maxGroups = 64

// expertGroups reads of how many of the groups of experts rows choose theirs.
func (l *loader) expertGroups(r *routing) {
	n := l.count("expert_group_count", 0, maxGroups, 1)
	if n <= 1 {
		return
	}
	if !l.arch.ffn.mixture.grouped {
		l.Fail("%s is %d: groups of experts are not supported for this architecture", l.key("expert_group_count"), n)
		return
	}
	used := l.count("expert_group_used_count", 1, n, required)
	switch {
	case l.Err() != nil || used == n:
		return
	case r.experts%n != 0 || r.experts/n*used < r.chosen || r.gating != softmaxGating && r.experts/n < 2:
		l.Fail("%s: %d experts in %d groups, of which %d are taken, for %d of them", l.key("expert_group_count"), r.experts, n, used, r.chosen)
	}
	r.groups, r.groupsUsed = n, used
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
		if n := l.count(key.name, 0, maxDim, 0); n > key.most && !(l.arch.ffn.mixture.dense && key.name == "leading_dense_block_count") {
			l.Fail("%s is %d: models in which only some layers are mixtures are not supported", l.key(key.name), n)
		}
	}
	const clamp = "swiglu_clamp_exp" // one number, or one a layer
	limits, ok := l.file.Metadata.Floats(l.key(clamp))
	if !ok {
		limits = []float32{float32(l.number(clamp, float64(l.arch.ffn.mixture.clamp)))}
	}
	for _, x := range limits {
		if x != l.arch.ffn.mixture.clamp {
			l.Fail("%s is %v: only %v is supported", l.key(clamp), x, l.arch.ffn.mixture.clamp)
		}
	}
	if x := l.number("attention.clamp_kqv", 0); x > 0 {
		l.Fail("%s is %v: clamped queries, keys and values are not supported", l.key("attention.clamp_kqv"), x)
	}
}

// mixture loads that of layer i. Its experts are in store, if that is not nil; pass
// computes it.
func (l *loader) mixture(i int, p mixtureParams, store *expertStore, pass *expertPass) *mixture {
	c, t, name := &l.cfg, l.arch.ffn.mixture, layerNames(i)
	m := &mixture{pass: pass, expertSet: expertSet{
		routing: p.routing, activation: l.arch.ffn.activation, ungated: l.arch.ffn.ungated, store: store, layer: i, width: p.width, sharedWidth: p.sharedWidth, reads: c.reads,
	}}
	m.router = l.Wide(name("ffn_gate_inp.weight"), p.experts, c.Hidden)
	m.onRouter = l.target(c.Hidden, &rotation{}, whole(name("ffn_gate_inp.weight"), p.experts))
	switch t.prefers {
	case preferred:
		m.prefer = l.Vector(name("exp_probs_b.bias"), p.experts)
	case preferredOfSoftmax:
		m.prefer = l.OptionalVector(name("exp_probs_b.bias"), p.experts)
	case preferredIfStored:
		if m.prefer = l.OptionalVector(name("exp_probs_b.bias"), p.experts); m.prefer != nil && p.gating != sigmoidGating {
			l.Fail("tensor %s: experts are chosen by it where %s is %d", name("exp_probs_b.bias"), l.key("expert_gating_func"), sigmoidGating)
		}
	}
	if t.biases {
		m.bias = l.Vector(name("ffn_gate_inp.bias"), p.experts)
		m.gateUpBias, m.downBias = l.expertBiases(name)
	}
	if store == nil {
		l.packExperts(m, i)
	}
	m.onUp, m.onDown = l.expertTargets(name, p.experts)
	if m.reads != c.Hidden {
		m.latent = l.latentExperts(name)
	}
	if n := p.sharedWidth; n > 0 {
		var made []*weights.Stored
		for _, part := range l.made() {
			made = append(made, l.Whole(name("ffn_"+part+"_shexp.weight"), n, c.Hidden))
		}
		m.shared = expert{gateUp: l.Stack(made...), down: l.Stack(l.Whole(name("ffn_down_shexp.weight"), c.Hidden, n))}
		m.onSharedUp = l.target(c.Hidden, &rotation{}, m.shared.gateUp.Rows...)
		m.onSharedDown = l.target(n, &rotation{}, whole(name("ffn_down_shexp.weight"), c.Hidden))
		if t.shared == sharedGated {
			m.sharedGate = l.Vector(name("ffn_gate_inp_shexp.weight"), c.Hidden)
		}
		if backend, ok := l.opt.Backend.(Accelerator); ok && m.taken != nil && l.Err() == nil {
			m.sharedTaken = backend.GatedExpert(i, SharedExpert, m.gatedOf(&m.shared, n))
		}
	}
	if see := l.opt.Routed; see != nil {
		m.routed = func(experts []int32, weights []float32) { see(i, experts, weights) }
	}
	return m
}

// packExperts packs all experts of m, of layer i, for the backend if that takes them.
func (l *loader) packExperts(m *mixture, i int) {
	backend, _ := l.opt.Backend.(Accelerator)
	if backend != nil && m.ungated { // which it does not know
		l.Place(nil)
		defer l.Place(backend)
		backend = nil
	}
	for e := 0; e < m.routing.experts && l.Err() == nil; e++ {
		sent := l.Sent()
		if backend != nil {
			l.Place(backend.Expert(i, e))
		}
		x := l.packExpert(layerNames(i), e)
		for _, packing := range x.gateUp.Packings {
			if !slices.Contains(m.packings, packing) {
				m.packings = append(m.packings, packing)
			}
		}
		m.list = append(m.list, x)
		if backend != nil {
			l.Place(backend)
			m.taken = append(m.taken, l.Sent() > sent && l.Err() == nil && (backend.GatedExpert(i, e, m.gated(e)) || x.gateUp.Device() != nil))
		}
	}
}
