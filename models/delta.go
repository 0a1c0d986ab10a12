package models

import (
	"github.com/lutra-lm/lutra/kernels/delta"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/load"
	"github.com/lutra-lm/lutra/models/recurrent"
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
	shape recurrent.Shape
	layer int // among the recurrent ones
	qkvz  product
	gates product   // beta, alpha
	norm  []float32 // [Width] of each head's output
	out   product
	group bool // out reads value heads grouped by their key heads
}

// readDelta reads the hyper-parameters of gated delta nets, and which layers are.
func readDelta(h *load.Header, m *spec) (s recurrent.Shape) {
	interval := h.Int("full_attention_interval", 1, load.MaxLayers, 4)
	if interval > m.Layers {
		h.Fail("%s is %d: none of %d layers has attention", h.Key("full_attention_interval"), interval, m.Layers)
		return s
	}
	const said = "attention.recurrent_layers" // of newer files
	list, ok := h.File.Metadata.Bools(h.Key(said))
	for i := range m.layers {
		y := &m.layers[i]
		if y.recurs = (i+1)%interval != 0; ok && (i >= len(list) || list[i] != y.recurs) {
			h.Fail("%s is %v, which is not what %s says", h.Key(said), list, h.Key("full_attention_interval"))
		}
	}
	s = recurrent.Shape{
		KeyHeads: h.Int("ssm.group_count", 1, load.MaxDim, load.Required), ValueHeads: h.Int("ssm.time_step_rank", 1, load.MaxDim, load.Required),
		Width: h.Int("ssm.state_size", delta.Tile, 1<<10, load.Required), Taps: h.Int("ssm.conv_kernel", 2, delta.MostTaps, load.Required),
		Grouped: m.arch.states.grouped,
	}
	inner := h.Int("ssm.inner_size", 1, load.MaxDim, load.Required)
	switch {
	case h.Err() != nil:
	case s.Width%delta.Tile != 0:
		h.Fail("%s is %d, want a multiple of %d", h.Key("ssm.state_size"), s.Width, delta.Tile)
	case s.Values() != inner:
		h.Fail("%s is %d: %d value heads of %d are %d", h.Key("ssm.inner_size"), inner, s.ValueHeads, s.Width, s.Values())
	case s.ValueHeads%s.KeyHeads != 0:
		h.Fail("%s: %d value heads do not share %d key heads evenly", h.Key("ssm.group_count"), s.ValueHeads, s.KeyHeads)
	}
	return s
}

// loadDelta loads the gated delta net of a layer.
func loadDelta(t *tensors, m *spec, y *layerSpec) mixer {
	shape := m.states
	heads, channels, values := shape.ValueHeads, shape.Channels(), shape.Values()
	d := &gatedDelta{shape: shape, layer: y.state}
	d.qkvz = t.rotatedProduct(m.Hidden, t.Whole(y.tensor("attn_qkv.weight"), channels, m.Hidden), t.Whole(y.tensor("attn_gate.weight"), values, m.Hidden))
	if shape.Grouped {
		d.gates = t.product(m.Hidden, betasAndAlphas(t, m, y.tensor("ssm_ba.weight"))...)
	} else {
		d.gates = t.product(m.Hidden, t.Whole(y.tensor("ssm_beta.weight"), heads, m.Hidden), t.Whole(y.tensor("ssm_alpha.weight"), heads, m.Hidden))
	}
	d.Conv = transposed(t.Vector(y.tensor("ssm_conv1d.weight"), shape.Taps, channels), shape.Taps, channels)
	d.A, d.DT = t.Vector(y.tensor("ssm_a"), heads), t.Vector(y.tensor("ssm_dt.bias"), heads)
	checkDecays(t, y.tensor("ssm_a"), d.A)
	d.norm = t.Vector(y.tensor("ssm_norm.weight"), shape.Width)
	d.out = t.rotatedMatrix(y.tensor("ssm_out.weight"), m.Hidden, values)
	d.group = t.rotations.Grouped && d.out.rotated.Block > 0 // else the matrix is as it ever was
	return d
}

// betasAndAlphas takes the rows of a matrix apart that has, for each key head, beta and
// alpha of its value heads.
func betasAndAlphas(t *tensors, m *spec, name string) []*load.Stored {
	n, rows := m.states.ValueHeads/m.states.KeyHeads, 2*m.states.ValueHeads
	var betas, alphas []*load.Stored
	for at := 0; at < rows && t.Err() == nil; at += 2 * n {
		betas = append(betas, t.Rows(name, at, at+n, m.Hidden, rows))
		alphas = append(alphas, t.Rows(name, at+n, at+2*n, m.Hidden, rows))
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
	d.gates.run(s, s.gates, s.h)
	if d.qkvz.rotated.Block > 0 {
		d.qkvz.read(s, s.h)
	}
	d.qkvz.multiply(s, s.qkv)
	width := d.rowWidth()
	s.rec.Run(s.qkv[:s.rows*width], width, s.gates, s.spans, d.layer, &d.Weights)
}

// attend turns the outputs into y.
func (d *gatedDelta) attend(s *rowShard) {
	normGate(s, d)
	d.out.run(s, s.y, s.a)
}

// normGate sets a of the rows to norm(outputs)·silu(z), a head at a time.
func normGate(s *rowShard, d *gatedDelta) {
	o := &s.ops
	o.dst, o.a, o.layer, o.eps = s.a, s.qkv, d, s.cfg.NormEps
	o.each(s.rows, d.shape.Values(), func(o *rowOps, i int) {
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
