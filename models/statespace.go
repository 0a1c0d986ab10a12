package models

import (
	"github.com/lutra-lm/lutra/kernels/delta"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/load"
	"github.com/lutra-lm/lutra/models/recurrent"
)

// stateSpace is a layer's selective state space (Mamba-2, see recurrent.StateSpace), from
// normed rows h to what it adds to the residual stream, y:
//
//	z, x, B, C, dt = h·Win
//	y = norm(scan(silu(conv(x, B, C)), dt) · silu(z))·Wout
type stateSpace struct {
	recurrent.Weights
	shape  recurrent.StateSpace
	layer  int       // among the recurrent ones
	in     product   // none, if attention's matrices make the rows too
	at     int       // where z begins in a row
	stride int       // of rows
	norm   []float32 // [Inner] RMSNorm of each group; nil: none
	out    product
}

// readStateSpace reads the hyper-parameters of state spaces.
func readStateSpace(h *load.Header, m *spec) recurrent.Shape {
	s := recurrent.StateSpace{
		Groups: h.Int("ssm.group_count", 1, load.MaxDim, load.Required), Heads: h.Int("ssm.time_step_rank", 1, load.MaxDim, load.Required),
		Len: h.Int("ssm.state_size", 1, 1<<12, load.Required),
	}
	taps, inner := h.Int("ssm.conv_kernel", 2, delta.MostTaps, load.Required), h.Int("ssm.inner_size", 1, load.MaxDim, load.Required)
	if h.Err() == nil && (inner%s.Heads != 0 || s.Heads%s.Groups != 0 || int64(s.Groups)*int64(s.Len) > load.MaxDim) {
		h.Fail("%s is %d: %d heads in %d groups do not share that evenly", h.Key("ssm.inner_size"), inner, s.Heads, s.Groups)
	}
	s.HeadDim = inner / s.Heads
	return recurrent.Shape{StateSpace: s, Taps: taps}
}

// statesAlone notes that every layer has a recurrent state, and nothing else: a file says so by zeros.
func statesAlone(h *load.Header, m *spec) {
	for _, name := range []string{"feed_forward_length", "attention.head_count", "attention.head_count_kv"} {
		h.Int(name, 0, 0, 0)
	}
	for i := range m.layers {
		m.layers[i].recurs = true
	}
}

// loadStateSpaceAlone loads the state space of a layer that has nothing else.
func loadStateSpaceAlone(t *tensors, m *spec, y *layerSpec) mixer {
	in := t.product(m.Hidden, stateSpaceIn(t, m, y))
	x := loadStateSpace(t, m, y)
	x.in = in
	return x
}

// stateSpaceIn finds the matrix that makes rows [z, x, B, C, dt] of h.
func stateSpaceIn(t *tensors, m *spec, y *layerSpec) *load.Stored {
	return t.Whole(y.tensor("ssm_in.weight"), stateSpaceWidth(m.states.StateSpace), m.Hidden)
}

// stateSpaceWidth returns the width of [z, x, B, C, dt].
func stateSpaceWidth(s recurrent.StateSpace) int { return 2*s.Inner() + 2*s.Groups*s.Len + s.Heads }

// loadStateSpace loads the state space of a layer, without in.
func loadStateSpace(t *tensors, m *spec, y *layerSpec) *stateSpace {
	s, taps, channels := m.states.StateSpace, m.states.Taps, m.states.Channels()
	x := &stateSpace{shape: s, layer: y.state, stride: stateSpaceWidth(s)}
	x.Conv = transposed(t.Vector(y.tensor("ssm_conv1d.weight"), taps, channels), taps, channels)
	x.ConvBias = t.OptionalVector(y.tensor("ssm_conv1d.bias"), channels)
	x.A, x.D, x.DT = t.Vector(y.tensor("ssm_a"), 1, s.Heads), t.Vector(y.tensor("ssm_d"), 1, s.Heads), t.Vector(y.tensor("ssm_dt.bias"), s.Heads)
	checkDecays(t, y.tensor("ssm_a"), x.A)
	x.norm = t.OptionalVector(y.tensor("ssm_norm.weight"), s.Inner()/s.Groups, s.Groups)
	x.out = t.matrix(y.tensor("ssm_out.weight"), m.Hidden, s.Inner())
	return x
}

// checkDecays fails on the factors of a state's decays, a tensor, that would let it grow.
func checkDecays(t *tensors, name string, factors []float32) {
	for h, a := range factors {
		if a > 0 {
			t.Fail("tensor %s: element %d is %v: the state would grow", name, h, a)
			return
		}
	}
}

// transposed returns the taps of channels, [channels][taps], as [taps][channels].
func transposed(x []float32, taps, channels int) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i%taps*channels+i/taps] = v
	}
	return y
}

// rowWidth returns the width of [z, x, B, C, dt].
func (m *stateSpace) rowWidth() int { return m.stride }

// project takes the rows through the recurrent states: the outputs stand where x stood.
func (m *stateSpace) project(s *rowShard) {
	m.in.run(s, s.qkv, s.h)
	m.scan(s)
}

// scan does that for rows whose z, x, B, C and dt have been made.
func (m *stateSpace) scan(s *rowShard) {
	s.rec.Run(s.qkv[m.at+m.shape.Inner():s.rows*m.stride], m.stride, nil, s.spans, m.layer, &m.Weights)
}

// attend turns the outputs into y.
func (m *stateSpace) attend(s *rowShard) {
	gateStates(s, m)
	m.out.run(s, s.y, s.a)
}

// gateStates sets a of the rows to norm(outputs · silu(z)).
func gateStates(s *rowShard, m *stateSpace) {
	o := &s.ops
	o.shard, o.layer, o.eps = s, m, s.cfg.NormEps
	o.each(s.rows, m.shape.Inner(), func(o *rowOps, i int) {
		m, inner := o.layer.(*stateSpace), o.layer.(*stateSpace).shape.Inner()
		row, dst := rowOf(o.shard.qkv, i, m.stride)[m.at:], rowOf(o.shard.a, i, inner)
		vector.SwiGLU(dst, row[:inner], row[inner:2*inner])
		group := inner / m.shape.Groups
		for lo := 0; m.norm != nil && lo < inner; lo += group {
			part := dst[lo : lo+group]
			vector.RMSNorm(part, part, m.norm[lo:lo+group], o.eps)
		}
	})
}

// attentionWithStates is attention and a state space side by side (Falcon-LLM Team 2025,
// "Falcon-H1", §2.1): both read h, and their outputs are added. One product makes the rows
// of both, [q, k, v, z, x, B, C, dt].
type attentionWithStates struct {
	*selfAttention
	states *stateSpace
}

// loadBesideStates loads the state space beside the attention of a layer.
func loadBesideStates(t *tensors, m *spec, y *layerSpec, a *selfAttention) *attentionWithStates {
	x := loadStateSpace(t, m, y)
	x.at, x.stride = a.q+2*a.kv, a.qkv.Sum
	return &attentionWithStates{selfAttention: a, states: x}
}

// project makes the rows, and notes what later ones will see of them.
func (b *attentionWithStates) project(s *rowShard) {
	b.selfAttention.project(s)
	b.states.scan(s)
}

// attend turns them into y.
func (b *attentionWithStates) attend(s *rowShard) {
	b.selfAttention.attend(s)
	copy(s.h, s.y[:s.rows*s.cfg.Hidden]) // not in use between norms
	b.states.attend(s)
	s.ops.add(s.y, s.h, s.rows, s.cfg.Hidden)
}
