package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/delta"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/recurrent"
	"github.com/lutra-lm/lutra/models/weights"
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
	shape       recurrent.Shape
	layer       int             // among the recurrent ones
	in          weights.Stacked // b, c, x
	out         kernels.Linear
	onIn, onOut *target
}

// convShape reads the hyper-parameters of short convolutions.
func (l *loader) convShape() recurrent.Shape {
	return recurrent.Shape{Inputs: l.cfg.Hidden, Taps: l.count("shortconv.l_cache", 2, delta.MostTaps, required)}
}

// shortConv loads that of layer i, number layer among the recurrent ones.
func (l *loader) shortConv(i, layer int, shape recurrent.Shape) *shortConv {
	c, name := &l.cfg, layerNames(i)
	taps := l.Array(name("shortconv.conv.weight"), shape.Taps, c.Hidden)
	m := &shortConv{
		Weights: recurrent.Weights{Conv: transposed(taps, shape.Taps, c.Hidden)}, shape: shape, layer: layer,
		in: l.Stack(l.Whole(name("shortconv.in_proj.weight"), 3*c.Hidden, c.Hidden)), out: l.Matrix(name("shortconv.out_proj.weight"), c.Hidden, c.Hidden),
	}
	m.onIn, m.onOut = l.target(c.Hidden, &rotation{}, m.in.Rows...), l.target(c.Hidden, &rotation{}, whole(name("shortconv.out_proj.weight"), c.Hidden))
	return m
}

// rowWidth returns the width of [b, c, x].
func (m *shortConv) rowWidth() int { return m.in.Sum }

// project takes the rows through the recurrent states: the convolution stands where x stood.
func (m *shortConv) project(s *rowShard) {
	s.acts.Set(s.h, s.rows, s.cfg.Hidden)
	m.in.Mul(s.qkv, &s.acts, &s.part)
	s.adapt(s.qkv, m.onIn)
	s.ops.gateInputs(s.qkv, s.rows, s.cfg.Hidden)
	s.rec.Run(s.qkv[2*s.cfg.Hidden:s.rows*m.in.Sum], m.in.Sum, nil, s.spans, m.layer, &m.Weights)
}

// attend turns the convolution into y.
func (m *shortConv) attend(s *rowShard) {
	s.ops.gateConvolved(s.a, s.qkv, s.rows, s.cfg.Hidden)
	s.acts.Set(s.a, s.rows, s.cfg.Hidden)
	m.out.Mul(s.y, &s.acts)
	s.adapt(s.y, m.onOut)
}

// dense describes the convolution for an Accelerator.
func (m *shortConv) dense() *DenseConv {
	return &DenseConv{Taps: m.shape.Taps, Weights: m.Conv, State: m.layer * m.shape.Size()}
}

// gateInputs multiplies x by b in the rows [b, c, x] of n, width each.
func (o *rowOps) gateInputs(rows []float32, n, width int) {
	o.a, o.width = rows, width
	o.each(n, width, func(o *rowOps, i int) {
		row := rowOf(o.a, i, 3*o.width)
		vector.Mul(row[2*o.width:], row[:o.width], row[2*o.width:])
	})
}

// gateConvolved sets dst[n][width] to c times what stands in the place of x.
func (o *rowOps) gateConvolved(dst, rows []float32, n, width int) {
	o.dst, o.a, o.width = dst, rows, width
	o.each(n, width, func(o *rowOps, i int) {
		row := rowOf(o.a, i, 3*o.width)
		vector.Mul(rowOf(o.dst, i, o.width), row[o.width:2*o.width], row[2*o.width:])
	})
}
