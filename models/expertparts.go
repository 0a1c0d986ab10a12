package models

import (
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/models/weights"
)

// expertPart is where a matrix of an expert stands in the file: rows [lo, lo+rows) of
// a tensor.
type expertPart struct {
	tensor         string
	dims           []int // of the tensor
	lo, rows, cols int
}

// made names the matrices of a feed-forward besides down.
func (l *loader) made() []string {
	if l.arch.ffn.ungated {
		return []string{"up"}
	}
	return []string{"gate", "up"}
}

// expertParts finds gate, if there is one, up and down of expert e of a layer.
func (l *loader) expertParts(name func(string) string, e int) (parts []expertPart) {
	width, reads := l.cfg.ExpertFFN, l.cfg.reads
	for _, part := range l.made() {
		parts = append(parts, l.expertPart(name, part, e, width, reads))
	}
	return append(parts, l.expertPart(name, "down", e, reads, width))
}

// expertPart finds a matrix: among those of all experts in one tensor, ffn_gate_exps;
// in older files by itself, ffn_gate.0; or in some of llama.cpp's, gate above up for
// each expert, ffn_gate_up_exps.
func (l *loader) expertPart(name func(string) string, part string, e, rows, cols int) expertPart {
	stack, own, both := name("ffn_"+part+"_exps.weight"), name(fmt.Sprintf("ffn_%s.%d.weight", part, e)), name("ffn_gate_up_exps.weight")
	experts := l.cfg.Experts
	switch {
	case l.file.Tensor(stack) != nil:
	case l.file.Tensor(own) != nil:
		return expertPart{own, []int{cols, rows}, 0, rows, cols}
	case l.file.Tensor(both) != nil && part != "down":
		at := 2 * e * rows
		if part == "up" {
			at += rows
		}
		return expertPart{both, []int{cols, 2 * rows, experts}, at, rows, cols}
	}
	return expertPart{stack, []int{cols, rows, experts}, e * rows, rows, cols}
}

// expert is one feed-forward. gateUp has up alone where there are no gates.
type expert struct{ gateUp, down weights.Stacked }

// packExpert reads and packs expert e of a layer.
func (l *loader) packExpert(name func(string) string, e int) expert {
	var packed []*weights.Stored
	for _, p := range l.expertParts(name, e) {
		packed = append(packed, l.Rows(p.tensor, p.lo, p.lo+p.rows, p.dims...))
	}
	down := len(packed) - 1
	return expert{gateUp: l.Stack(packed[:down]...), down: l.Stack(packed[down])}
}

// expertBiases loads the biases of a layer's experts.
func (l *loader) expertBiases(name func(string) string) (gateUp, down []float32) {
	n, width := l.cfg.Experts, l.cfg.ExpertFFN
	down = l.Array(name("ffn_down_exps.bias"), l.cfg.Hidden, n)
	if both := name("ffn_gate_up_exps.bias"); l.file.Tensor(both) != nil {
		return l.Array(both, 2*width, n), down
	}
	gate, up := l.Array(name("ffn_gate_exps.bias"), width, n), l.Array(name("ffn_up_exps.bias"), width, n)
	for e := 0; e < n && l.Err() == nil; e++ {
		gateUp = append(append(gateUp, rowOf(gate, e, width)...), rowOf(up, e, width)...)
	}
	return gateUp, down
}

// HoldsExperts tells by a tensor's name whether it holds matrices of experts.
func HoldsExperts(tensor string) bool {
	_, part, ok := strings.Cut(tensor, ".ffn_")
	if !ok || !strings.HasSuffix(part, ".weight") {
		return false
	}
	return strings.HasSuffix(part, "_exps.weight") || strings.Count(part, ".") == 2
}
