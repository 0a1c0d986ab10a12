package models

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/models/load"
)

// routing turns a router's numbers into experts and their weights.
type routing struct {
	experts, chosen int // chosen: how many of the experts a row takes
	gating          gating
	normed          bool    // weights of the chosen experts are divided by their sum
	scale           float32 // what they are multiplied by then

	groups, groupsUsed int // of experts, and how many of the best may be chosen from; 0: all
}

// gating makes probabilities of a router's numbers, as expert_gating_func numbers it.
type gating uint8

const (
	softmaxGating       gating = 1 // over all experts
	sigmoidGating       gating = 2 // of each expert
	chosenSoftmaxGating gating = 3 // softmax over the chosen experts
	// sparsemixerGating has no number in files (Liu et al. 2023, "Sparse
	// Backpropagation for MoE Training", as Phi-3.5-MoE infers with it).
	sparsemixerGating gating = 255
)

// readRouting reads how rows choose experts, whose numbers are known.
func readRouting(h *load.Header, m *spec) routing {
	a := m.arch.ffn.mixture
	r := routing{experts: m.Experts, chosen: m.ExpertsUsed, gating: softmaxGating, normed: !a.unnormed, scale: 1}
	// Older files of GLM-4.7-Flash do not say.
	if a.prefers == preferred || a.prefers == preferredIfStored && h.HasTensor(m.layers[m.DenseLayers].tensor("exp_probs_b.bias")) {
		r.gating = sigmoidGating
	}
	if n := h.Int("expert_gating_func", 0, 3, 0); n > 0 {
		if r.gating = gating(n); a.prefers == preferred && r.gating != sigmoidGating {
			h.Fail("%s is %d: only %d is supported for this architecture", h.Key("expert_gating_func"), n, sigmoidGating)
		}
	}
	if a.mixes && m.authors {
		if r.gating = sparsemixerGating; r.chosen != 2 {
			h.Fail("%s is %d: sparsemixer chooses 2", h.Key("expert_used_count"), r.chosen)
		}
	}
	r.normed = h.Flag("expert_weights_norm", r.normed)
	readExpertGroups(h, a, &r)
	if h.NotNegative("expert_weights_scale") > 0 {
		r.scale = h.Factor("expert_weights_scale", 1)
	}
	return r
}

// maxGroups bounds the groups of experts.
const maxGroups = 64

// readExpertGroups reads of how many of the groups of experts rows choose theirs.
func readExpertGroups(h *load.Header, a *mixtureTraits, r *routing) {
	n := h.Int("expert_group_count", 0, maxGroups, 1)
	if n <= 1 {
		return
	}
	if !a.grouped {
		h.Fail("%s is %d: groups of experts are not supported for this architecture", h.Key("expert_group_count"), n)
		return
	}
	used := h.Int("expert_group_used_count", 1, n, load.Required)
	switch {
	case h.Err() != nil || used == n:
		return
	case r.experts%n != 0 || r.experts/n*used < r.chosen || r.gating != softmaxGating && r.experts/n < 2:
		h.Fail("%s: %d experts in %d groups, of which %d are taken, for %d of them", h.Key("expert_group_count"), r.experts, n, used, r.chosen)
	}
	r.groups, r.groupsUsed = n, used
}

// route sets the experts of a row, the best first, and their weights, from the
// router's numbers. Of experts with equal numbers the first is the better one. If
// one is no number, none of the weights is. With prefer, [experts], experts are chosen by
// their probabilities plus that, which changes no weight.
func (r *routing) route(experts []int32, weights, logits, prefer []float32) {
	n, finite := 0, true
	shares := softmax{}
	if prefer != nil && r.gating == softmaxGating {
		shares = newSoftmax(logits)
	}
	var closed [maxGroups]bool
	if r.groups > 0 {
		r.closeGroups(&closed, logits, prefer)
	}
	for e, x := range logits {
		finite = finite && x-x == 0
		if r.groups > 0 && closed[e*r.groups/r.experts] {
			continue
		}
		if prefer != nil {
			x = r.probability(x, shares) + prefer[e]
		}
		i := n
		if n < r.chosen {
			n++
		} else if i--; !(x > weights[i]) {
			continue
		}
		for ; i > 0 && x > weights[i-1]; i-- {
			experts[i], weights[i] = experts[i-1], weights[i-1]
		}
		experts[i], weights[i] = int32(e), x // by which they are chosen, so far
	}
	if r.gating == sparsemixerGating {
		r.sparsemix(experts, weights, logits, finite)
		return
	}
	sum := float64(0)
	for i, e := range experts {
		x := float64(logits[e])
		if r.gating == sigmoidGating {
			x = 1 / (1 + math.Exp(-x))
		} else {
			x = math.Exp(x - float64(logits[experts[0]]))
		}
		weights[i] = float32(x)
		sum += x
	}
	switch {
	case !finite:
		sum = math.NaN()
	case r.normed || r.gating == chosenSoftmaxGating:
	case r.gating == sigmoidGating:
		sum = 1
	default:
		sum = 0
		for _, x := range logits {
			sum += math.Exp(float64(x) - float64(logits[experts[0]]))
		}
	}
	for i, w := range weights {
		weights[i] = float32(float64(w)/sum) * r.scale
	}
}

// closeGroups marks the groups of which no expert may be chosen ("DeepSeek-V2", §2.2.2). A group counts by its
// best expert, or with sigmoids by the sum of its best two ("DeepSeek-V3", §2.1.2). Of equal groups the first is
// the better one.
func (r *routing) closeGroups(closed *[maxGroups]bool, logits, prefer []float32) {
	var score [maxGroups]float32
	size := r.experts / r.groups
	for g := range r.groups {
		first, second := float32(math.Inf(-1)), float32(math.Inf(-1))
		for e := g * size; e < (g+1)*size; e++ {
			x := logits[e]
			if r.gating == sigmoidGating {
				if x = sigmoid(x); prefer != nil {
					x += prefer[e]
				}
			}
			if x > first {
				first, second = x, first
			} else if x > second {
				second = x
			}
		}
		if score[g], closed[g] = first, true; r.gating == sigmoidGating {
			score[g] += second
		}
	}
	for range r.groupsUsed {
		best := -1
		for g := range r.groups {
			if closed[g] && (best < 0 || score[g] > score[best]) {
				best = g
			}
		}
		closed[best] = false
	}
}

// softmax is the largest of some numbers, and the sum of the exponentials of all less that.
type softmax struct{ top, sum float64 }

func newSoftmax(x []float32) softmax {
	s := softmax{top: float64(slices.Max(x))}
	for _, v := range x {
		s.sum += math.Exp(float64(v) - s.top)
	}
	return s
}

// probability returns what a router's number means, by which experts are chosen.
func (r *routing) probability(x float32, of softmax) float32 {
	if r.gating == sigmoidGating {
		return sigmoid(x)
	}
	return float32(math.Exp(float64(x)-of.top) / of.sum)
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// sparsemixerJitter is router_jitter_noise of Phi's models.
const sparsemixerJitter = 0.01

// sparsemix sets the weight of each expert to its softmax among those that are nearly
// as good, relative to the magnitudes, and were not chosen before it.
func (r *routing) sparsemix(experts []int32, weights, logits []float32, finite bool) {
	for i, best := range experts {
		top, sum := float64(logits[best]), 0.0
		for e, x := range logits {
			x := float64(x)
			behind := (top - x) / max(math.Abs(x), top) // of zeros not a number, which is no reason either
			if !slices.Contains(experts[:i], int32(e)) && !(behind > 2*sparsemixerJitter) {
				sum += math.Exp(x - top)
			}
		}
		if weights[i] = float32(1/sum) * r.scale; !finite {
			weights[i] = float32(math.NaN())
		}
	}
}
