package models

import (
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/models/load"
)

// expertMatrices finds the matrices of experts in a file.
type expertMatrices struct {
	t      *tensors
	count  int      // of a layer's experts
	hidden int      // numbers of the residual stream
	width  int      // of an expert
	reads  int      // numbers that an expert reads and makes
	made   []string // names of the matrices besides down
}

func newExpertMatrices(t *tensors, m *spec) *expertMatrices {
	return &expertMatrices{t, m.Experts, m.Hidden, m.ExpertFFN, m.mixture.reads, m.mixture.made()}
}

// made names the matrices of a feed-forward besides down.
func (m *mixtureSpec) made() []string {
	if m.ungated {
		return []string{"up"}
	}
	return []string{"gate", "up"}
}

// expertPart is where a matrix of an expert stands in the file: rows [lo, lo+rows) of
// a tensor.
type expertPart struct {
	tensor         string
	dims           []int // of the tensor
	lo, rows, cols int
}

// parts finds gate, if there is one, up and down of expert e of a layer.
func (x *expertMatrices) parts(y *layerSpec, e int) (parts []expertPart) {
	for _, part := range x.made {
		parts = append(parts, x.part(y, part, e, x.width, x.reads))
	}
	return append(parts, x.part(y, "down", e, x.reads, x.width))
}

// part finds a matrix of an expert. It is among the matrices of all experts in one tensor, ffn_gate_exps; in
// older files by itself, ffn_gate.0; or in some of llama.cpp's, gate above up for each expert,
// ffn_gate_up_exps.
func (x *expertMatrices) part(y *layerSpec, part string, e, rows, cols int) expertPart {
	stack, own, both := y.tensor("ffn_"+part+"_exps.weight"), y.tensor(fmt.Sprintf("ffn_%s.%d.weight", part, e)), y.tensor("ffn_gate_up_exps.weight")
	switch {
	case x.t.Has(stack):
	case x.t.Has(own):
		return expertPart{own, []int{cols, rows}, 0, rows, cols}
	case x.t.Has(both) && part != "down":
		at := 2 * e * rows
		if part == "up" {
			at += rows
		}
		return expertPart{both, []int{cols, 2 * rows, x.count}, at, rows, cols}
	}
	return expertPart{stack, []int{cols, rows, x.count}, e * rows, rows, cols}
}

// expert is one feed-forward. gateUp has up alone where there are no gates.
type expert struct{ gateUp, down load.Stacked }

// pack reads and packs expert e of a layer.
func (x *expertMatrices) pack(y *layerSpec, e int) expert {
	var packed []*load.Stored
	for _, p := range x.parts(y, e) {
		packed = append(packed, x.t.Rows(p.tensor, p.lo, p.lo+p.rows, p.dims...))
	}
	down := len(packed) - 1
	return expert{gateUp: x.t.Stack(packed[:down]...), down: x.t.Stack(packed[down])}
}

// biases loads the biases of a layer's experts.
func (x *expertMatrices) biases(y *layerSpec) (gateUp, down []float32) {
	n, width := x.count, x.width
	down = x.t.Vector(y.tensor("ffn_down_exps.bias"), x.hidden, n)
	if both := y.tensor("ffn_gate_up_exps.bias"); x.t.Has(both) {
		return x.t.Vector(both, 2*width, n), down
	}
	gate, up := x.t.Vector(y.tensor("ffn_gate_exps.bias"), width, n), x.t.Vector(y.tensor("ffn_up_exps.bias"), width, n)
	for e := 0; e < n && x.t.Err() == nil; e++ {
		gateUp = append(append(gateUp, rowOf(gate, e, width)...), rowOf(up, e, width)...)
	}
	return gateUp, down
}

// adapterSites notes what a layer's experts make of rows: gate and up, and down.
func (x *expertMatrices) adapterSites(y *layerSpec) (up, down *adapterSite) {
	return x.adapterSite(y, x.reads, x.width, x.made...), x.adapterSite(y, x.width, x.reads, "down")
}

// adapterSite notes what matrices [n][cols] make of rows.
func (x *expertMatrices) adapterSite(y *layerSpec, cols, n int, parts ...string) *adapterSite {
	var rows []load.Rows
	var alone []string
	for i, part := range parts {
		r := load.Rows{Tensor: y.tensor("ffn_" + part + "_exps.weight"), N: n, Of: n * x.count}
		if both := y.tensor("ffn_gate_up_exps.weight"); len(parts) > 1 && x.t.Has(both) {
			r.Tensor, r.Lo, r.Of = both, i*n, 2*r.Of
		}
		rows, alone = append(rows, r), append(alone, y.tensor("ffn_"+part+".%d.weight"))
	}
	on := x.t.adapterSite(cols, rows...)
	if on != nil {
		on.matrices, on.alone = x.count, alone
	}
	return on
}

// HoldsExperts tells by a tensor's name whether it holds matrices of experts.
func HoldsExperts(tensor string) bool {
	_, part, ok := strings.Cut(tensor, ".ffn_")
	if !ok || !strings.HasSuffix(part, ".weight") {
		return false
	}
	return strings.HasSuffix(part, "_exps.weight") || strings.Count(part, ".") == 2
}
