package models

import (
	"slices"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/delta"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/recurrent"
	"github.com/lutra-lm/lutra/models/weights"
)

// gatedDelta is a layer's linear attention by the gated delta rule (Yang et al.
// 2024, "Gated Delta Networks", §3.4), from normed rows h to what it adds to the
// residual stream, y:
//
//	q, k, v = silu(conv(h·Wqkv)); z = h·Wz; beta, decay = gates(h·Wbeta, h·Walpha)
//	state = decay·state + k·(beta·(v - decay·stateᵀk))ᵀ
//	y = (norm(stateᵀq) · silu(z))·Wout
//
// The state takes the place of keys and values: it is the same size for any length.
type gatedDelta struct {
	recurrent.Weights
	shape                recurrent.Shape
	layer                int // among the recurrent ones
	qkvz                 weights.Stacked
	gates                weights.Stacked // beta, alpha
	norm                 []float32       // [Width] of each head's output
	out                  kernels.Linear
	rotate               rotation // of what qkvz reads
	last                 rotation // of what out reads
	onIn, onGates, onOut *target
	group                bool // out reads value heads grouped by their key heads
}

// deltaShape reads the hyper-parameters of gated delta nets.
func (l *loader) deltaShape() (s recurrent.Shape) {
	c := &l.cfg
	interval := l.count("full_attention_interval", 1, maxLayers, 4)
	if interval > c.Layers {
		l.Fail("%s is %d: none of %d layers has attention", l.key("full_attention_interval"), interval, c.Layers)
		return s
	}
	l.recurs = make([]bool, c.Layers)
	for i := range l.recurs {
		l.recurs[i] = (i+1)%interval != 0
	}
	const said = "attention.recurrent_layers" // of newer files
	if list, ok := l.file.Metadata.Bools(l.key(said)); ok && !slices.Equal(list[:min(len(list), c.Layers)], l.recurs) {
		l.Fail("%s is %v, which is not what %s says", l.key(said), list, l.key("full_attention_interval"))
	}
	s = recurrent.Shape{
		KeyHeads: l.count("ssm.group_count", 1, maxDim, required), ValueHeads: l.count("ssm.time_step_rank", 1, maxDim, required),
		Width: l.count("ssm.state_size", delta.Tile, 1<<10, required), Taps: l.count("ssm.conv_kernel", 2, delta.MostTaps, required),
		Grouped: l.arch.attention.groupedNets,
	}
	inner := l.count("ssm.inner_size", 1, maxDim, required)
	switch {
	case l.Err() != nil:
	case s.Width%delta.Tile != 0:
		l.Fail("%s is %d, want a multiple of %d", l.key("ssm.state_size"), s.Width, delta.Tile)
	case s.Values() != inner:
		l.Fail("%s is %d: %d value heads of %d are %d", l.key("ssm.inner_size"), inner, s.ValueHeads, s.Width, s.Values())
	case s.ValueHeads%s.KeyHeads != 0:
		l.Fail("%s: %d value heads do not share %d key heads evenly", l.key("ssm.group_count"), s.ValueHeads, s.KeyHeads)
	}
	return s
}

// gatedDelta loads that of layer i, number layer among the recurrent ones.
func (l *loader) gatedDelta(i, layer int, shape recurrent.Shape) *gatedDelta {
	c, name := &l.cfg, layerNames(i)
	d := &gatedDelta{shape: shape, layer: layer, group: l.hadamard.grouped}
	heads, channels, values := shape.ValueHeads, shape.Channels(), shape.Values()
	qkv, z, out := name("attn_qkv.weight"), name("attn_gate.weight"), name("ssm_out.weight")
	d.rotate, d.last = l.rotation(c.Hidden, qkv, z), l.rotation(values, out)
	if d.group && d.last.block == 0 {
		d.group = false // the matrix is as it ever was
	}
	d.qkvz = l.Stack(l.Whole(qkv, channels, c.Hidden), l.Whole(z, values, c.Hidden))
	if shape.Grouped {
		d.gates = l.Stack(l.betasAndAlphas(name("ssm_ba.weight"), shape)...)
	} else {
		d.gates = l.Stack(l.Whole(name("ssm_beta.weight"), heads, c.Hidden), l.Whole(name("ssm_alpha.weight"), heads, c.Hidden))
	}
	taps := l.Array(name("ssm_conv1d.weight"), shape.Taps, channels)
	d.Conv = transposed(taps, shape.Taps, channels)
	d.A, d.DT = l.Vector(name("ssm_a"), heads), l.Vector(name("ssm_dt.bias"), heads)
	l.checkDecays(name("ssm_a"), d.A)
	d.norm = l.Vector(name("ssm_norm.weight"), shape.Width)
	d.out = l.Matrix(out, c.Hidden, values)
	d.onGates, d.onIn, d.onOut = l.target(c.Hidden, &rotation{}, d.gates.Rows...), l.target(c.Hidden, &d.rotate, d.qkvz.Rows...), l.target(values, &d.last, whole(out, c.Hidden))
	return d
}

// betasAndAlphas takes the rows of a matrix apart that has, for each key head, beta and
// alpha of its value heads.
func (l *loader) betasAndAlphas(name string, shape recurrent.Shape) []*weights.Stored {
	n := shape.ValueHeads / shape.KeyHeads
	var betas, alphas []*weights.Stored
	for at := 0; at < 2*shape.ValueHeads && l.Err() == nil; at += 2 * n {
		betas = append(betas, l.Part(name, 2*shape.ValueHeads, at, at+n, l.cfg.Hidden))
		alphas = append(alphas, l.Part(name, 2*shape.ValueHeads, at+n, at+2*n, l.cfg.Hidden))
	}
	return append(betas, alphas...)
}

// dense describes the net for an Accelerator.
func (d *gatedDelta) dense() *DenseDelta {
	s := &d.shape
	return &DenseDelta{
		KeyHeads: s.KeyHeads, ValueHeads: s.ValueHeads, Width: s.Width, Taps: s.Taps, Grouped: s.Grouped,
		Conv: d.Conv, Gates: d.gates.Devices(), A: d.A, DT: d.DT, Norm: d.norm, State: d.layer * s.Size(),
	}
}

// rowWidth returns the width of [q, k, v, z].
func (d *gatedDelta) rowWidth() int { return d.shape.Channels() + d.shape.Values() }

// project takes the rows through the recurrent states: their outputs stand where
// the values stood.
func (d *gatedDelta) project(s *rowShard) {
	s.acts.Set(s.h, s.rows, s.cfg.Hidden)
	d.gates.Mul(s.gates, &s.acts, &s.part)
	s.adapt(s.gates, d.onGates)
	if s.ops.rotate(s.h, s.rows, s.cfg.Hidden, &d.rotate) {
		s.acts.Set(s.h, s.rows, s.cfg.Hidden)
	}
	d.qkvz.Mul(s.qkv, &s.acts, &s.part)
	s.adapt(s.qkv, d.onIn)
	width := d.rowWidth()
	s.rec.Run(s.qkv[:s.rows*width], width, s.gates, s.spans, d.layer, &d.Weights)
}

// attend turns the outputs into y.
func (d *gatedDelta) attend(s *rowShard) {
	s.ops.normGate(s.a, s.qkv, s.rows, d, s.cfg.NormEps)
	s.ops.rotate(s.a, s.rows, d.shape.Values(), &d.last)
	s.acts.Set(s.a, s.rows, d.shape.Values())
	d.out.Mul(s.y, &s.acts)
	s.adapt(s.y, d.onOut)
}

// normGate sets dst[n][Values] to norm(outputs)·silu(z), a head at a time.
func (o *rowOps) normGate(dst, rows []float32, n int, d *gatedDelta, eps float32) {
	o.dst, o.a, o.layer, o.eps = dst, rows, d, eps
	o.each(n, d.shape.Values(), func(o *rowOps, i int) {
		d := o.layer.(*gatedDelta)
		s := &d.shape
		row, dst := rowOf(o.a, i, d.rowWidth())[2*s.KeyHeads*s.Width:], rowOf(o.dst, i, s.Values())
		for h := range s.ValueHeads {
			to := h
			if d.group {
				to = h%s.KeyHeads*(s.ValueHeads/s.KeyHeads) + h/s.KeyHeads
			}
			head := rowOf(dst, to, s.Width)
			vector.RMSNorm(head, rowOf(row, h, s.Width), d.norm, o.eps)
			vector.SwiGLU(head, rowOf(row[s.Values():], h, s.Width), head)
		}
	})
}
