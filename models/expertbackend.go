package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// ExpertBackend is a kernels.Backend that computes the experts of mixtures by a plan
// of its own: which of them it takes, how many rows of each at once, and what computes
// those for which there is no room.
type ExpertBackend interface {
	kernels.Backend
	// Mixtures tells what mixtures the model has, before anything is loaded. An error
	// refuses the model.
	Mixtures(s MixtureShape) error
	// Expert loads the matrices of an expert. Nil: the CPU computes it.
	Expert(layer, expert int) kernels.Backend
	// Begin tells of the rows of the step that begins.
	Begin(rows []RowPos)
	// RunExperts computes the experts that x names, in every step; they may be none.
	RunExperts(x *Experts)
}

// MixtureShape is what the mixtures of a model have in common.
type MixtureShape struct {
	Model           string // general.name
	Layers          int    // all of which are mixtures
	Experts, Chosen int    // of a layer, and how many of them a row takes
	Hidden, Width   int    // what an expert reads and makes, and what its gate and up make
}

// Experts are the rows of a step that chose experts which a backend has, grouped by
// expert: those of expert e stand at places [First[e], First[e+1]).
type Experts struct {
	Layer  int
	Rows   []RowPos  // of the step
	H      []float32 // [rows][Hidden] what experts read
	List   []int32   // experts that rows chose and the backend has
	First  []int32   // [experts+1]
	RowAt  []int32   // [places]
	GateUp []float32 // [places][2·Width] memory for what gate and up make
	Gate   []float32 // [places][Width] for what GLU makes of that
	Out    []float32 // [places][Hidden] to be set
	Hidden int
	Width  int

	mixture *mixture
}

// Matrices are the products of expert e.
func (x *Experts) Matrices(e int32) (gateUp, down kernels.Linear) {
	w := x.mixture.expert(e)
	return w.gateUp.Device(), w.down.Device()
}

// GLU sets Gate of a place of expert e from GateUp.
func (x *Experts) GLU(e int32, place int) {
	both, m := rowOf(x.GateUp, place, 2*x.Width), x.mixture
	if m.downBias != nil {
		vector.AddInto(both, rowOf(m.gateUpBias, int(e), 2*x.Width))
	}
	m.activation(rowOf(x.Gate, place, x.Width), both[:x.Width], both[x.Width:])
}

// onBackend has the backend compute the experts that it has, and leaves the others in
// x.groups.
func (x *expertPass) onBackend() {
	m, s := x.m, x.s
	x.request.List = x.request.List[:0]
	if m.taken == nil || s.device.backend.Err() != nil {
		return
	}
	left := x.groups[:0]
	for _, e := range x.groups {
		if m.taken[e] {
			x.request.List = append(x.request.List, e)
		} else {
			left = append(left, e)
		}
	}
	x.groups = left
	x.request = Experts{
		Layer: m.layer, Rows: s.rowPos, H: s.h, List: x.request.List, First: x.first, RowAt: x.rowAt,
		GateUp: x.gateUp, Gate: x.gate, Out: x.out, Hidden: s.cfg.Hidden, Width: m.width, mixture: m,
	}
	s.device.experts.RunExperts(&x.request)
	for _, e := range x.request.List {
		for at := x.first[e]; at < x.first[e+1] && m.downBias != nil; at++ {
			vector.AddInto(rowOf(x.out, int(at), s.cfg.Hidden), rowOf(m.downBias, int(e), s.cfg.Hidden))
		}
	}
}
