package models

import (
	"github.com/lutra-lm/lutra/kernels/delta"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/load"
	"github.com/lutra-lm/lutra/models/recurrent"
)

// shortConv is a layer's gated short convolution ("LFM2 Technical Report", §2.1), from
// normed rows h to what it adds to the residual stream, y:
//
//	b, c, x = h·Win
//	y = (c · conv(b·x))·Wout
//
// Its state is what the convolution looks back to.
type shortConv struct {
	recurrent.Weights
	shape recurrent.Shape
	layer int     // among the recurrent ones
	in    product // b, c, x
	out   product
}

// readShortConv reads the hyper-parameters of short convolutions.
func readShortConv(h *load.Header, m *spec) recurrent.Shape {
	return recurrent.Shape{Inputs: m.Hidden, Taps: h.Int("shortconv.l_cache", 2, delta.MostTaps, load.Required)}
}

// loadShortConv loads the short convolution of a layer.
func loadShortConv(t *tensors, m *spec, y *layerSpec) mixer {
	taps := t.Vector(y.tensor("shortconv.conv.weight"), m.states.Taps, m.Hidden)
	return &shortConv{
		Weights: recurrent.Weights{Conv: transposed(taps, m.states.Taps, m.Hidden)}, shape: m.states, layer: y.state,
		in: t.matrix(y.tensor("shortconv.in_proj.weight"), 3*m.Hidden, m.Hidden), out: t.matrix(y.tensor("shortconv.out_proj.weight"), m.Hidden, m.Hidden),
	}
}

// rowWidth returns the width of [b, c, x].
func (m *shortConv) rowWidth() int { return m.in.Sum }

// project takes the rows through the recurrent states: the convolution stands where x stood.
func (m *shortConv) project(s *rowShard) {
	m.in.run(s, s.qkv, s.h)
	gateInputs(s)
	s.rec.Run(s.qkv[2*s.cfg.Hidden:s.rows*m.in.Sum], m.in.Sum, nil, s.spans, m.layer, &m.Weights)
}

// attend turns the convolution into y.
func (m *shortConv) attend(s *rowShard) {
	gateConvolved(s)
	m.out.run(s, s.y, s.a)
}

// dense describes the convolution for an Accelerator.
func (m *shortConv) dense() *DenseConv {
	return &DenseConv{Taps: m.shape.Taps, Weights: m.Conv, State: m.layer * m.shape.Size()}
}

// gateInputs multiplies x by b in the rows [b, c, x].
func gateInputs(s *rowShard) {
	o := &s.ops
	o.a, o.width = s.qkv, s.cfg.Hidden
	o.each(s.rows, o.width, func(o *rowOps, i int) {
		row := rowOf(o.a, i, 3*o.width)
		vector.Mul(row[2*o.width:], row[:o.width], row[2*o.width:])
	})
}

// gateConvolved sets a of the rows to c times what stands in the place of x.
func gateConvolved(s *rowShard) {
	o := &s.ops
	o.dst, o.a, o.width = s.a, s.qkv, s.cfg.Hidden
	o.each(s.rows, o.width, func(o *rowOps, i int) {
		row := rowOf(o.a, i, 3*o.width)
		vector.Mul(rowOf(o.dst, i, o.width), row[o.width:2*o.width], row[2*o.width:])
	})
}
