package models

import "github.com/lutra-lm/lutra/kernels/matrix"

// expertSet is the experts of a layer, with what rows choose them by.
type expertSet struct {
	routing
	router           product   // [experts][Hidden], in float32
	bias             []float32 // [experts] of what it makes; nil: none
	prefer           []float32 // [experts] that is added to probabilities to choose by; nil: none
	norm, routerNorm []float32 // [Hidden] RMSNorm of x that experts and router read; nil: they read h
	factors          []float32 // [experts] of the weights; nil: ones

	expertWeights
	layer   int
	width   int // of what gate and up make
	reads   int // numbers that experts read and make: Hidden, or the latent's
	ungated bool
	unit    GatedUnit
	latent  *latentExperts // nil: experts read h
	shared  sharedExpert
	joins   bool // the Accelerator may add what the experts make to the stream

	routed func(experts []int32, weights []float32) // LoadOptions.Routed of this layer; may be nil
}

// expertWeights are the weights of a layer's experts, of which each row takes a few.
type expertWeights struct {
	list     []expert
	store    *expertStore     // has the experts of all layers, if they are not in list
	packings []matrix.Packing // of the experts' matrices that gate and up are
	taken    []bool           // [experts] the Accelerator computes them; nil: there is none
	// Biases of what the experts' matrices make, [experts] × [2·width] and [Hidden]; nil:
	// none.
	gateUpBias, downBias []float32
	onUp, onDown         *adapterSite
}

// sharedExpert is the expert of a layer that all rows take.
type sharedExpert struct {
	expert
	width        int       // 0: there is none
	gate         []float32 // [Hidden] g; nil: one in place of the sigmoid
	taken        bool      // the Accelerator computes it
	onUp, onDown *adapterSite
}

// makes returns the numbers that gate and up of a width make, or up alone.
func (m *expertSet) makes(width int) int {
	if m.ungated {
		return width
	}
	return 2 * width
}

// gatedOf describes an expert of that width for an Accelerator, without biases.
func (m *expertSet) gatedOf(x *expert, width int) *GatedExpert {
	return &GatedExpert{GateUp: x.gateUp.Devices(), Down: x.down.Device(), Unit: m.unit, Width: width}
}

// gated describes expert e for an Accelerator.
func (m *expertSet) gated(e int) *GatedExpert {
	g := m.gatedOf(&m.list[e], m.width)
	if m.downBias != nil {
		g.GateUpBias, g.DownBias = rowOf(m.gateUpBias, e, 2*m.width), rowOf(m.downBias, e, len(m.downBias)/m.routing.experts)
	}
	return g
}

// expert returns expert e, which is in memory.
func (m *expertSet) expert(e int32) *expert {
	if m.store != nil {
		return m.store.at(m.layer, e)
	}
	return &m.list[e]
}
