package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/delta"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/recurrent"
	"github.com/lutra-lm/lutra/models/weights"
)

// stateSpace is a layer's selective state space (Mamba-2, see recurrent.StateSpace), from
// normed rows h to what it adds to the residual stream, y:
//
//	z, x, B, C, dt = h·Win
//	y = norm(scan(silu(conv(x, B, C)), dt) · silu(z))·Wout
type stateSpace struct {
	recurrent.Weights
	shape       recurrent.StateSpace
	layer       int             // among the recurrent ones
	in          weights.Stacked // not, if it is attention's matrices too that make the rows
	at          int             // where z begins in a row
	stride      int             // of rows
	norm        []float32       // [Inner] RMSNorm of each group; nil: none
	out         kernels.Linear
	onIn, onOut *target
}

// stateSpaceShape reads the hyper-parameters of state spaces.
func (l *loader) stateSpaceShape() recurrent.Shape {
	s := recurrent.StateSpace{
		Groups: l.count("ssm.group_count", 1, maxDim, required), Heads: l.count("ssm.time_step_rank", 1, maxDim, required),
		Len: l.count("ssm.state_size", 1, 1<<12, required),
	}
	taps, inner := l.count("ssm.conv_kernel", 2, delta.MostTaps, required), l.count("ssm.inner_size", 1, maxDim, required)
	if l.Err() == nil && (inner%s.Heads != 0 || s.Heads%s.Groups != 0 || int64(s.Groups)*int64(s.Len) > maxDim) {
		l.Fail("%s is %d: %d heads in %d groups do not share that evenly", l.key("ssm.inner_size"), inner, s.Heads, s.Groups)
	}
	s.HeadDim = inner / s.Heads
	return recurrent.Shape{StateSpace: s, Taps: taps}
}

// stateSpaceAlone loads that of a layer that has nothing else.
func (l *loader) stateSpaceAlone(i, layer int, shape recurrent.Shape) *stateSpace {
	in := l.Stack(l.stateSpaceIn(i, shape.StateSpace))
	m := l.stateSpace(i, layer, shape)
	m.in, m.onIn = in, l.target(l.cfg.Hidden, &rotation{}, in.Rows...)
	return m
}

// stateSpaceIn reads the matrix that makes rows [z, x, B, C, dt] of h.
func (l *loader) stateSpaceIn(i int, s recurrent.StateSpace) *weights.Stored {
	return l.Whole(layerNames(i)("ssm_in.weight"), stateSpaceWidth(s), l.cfg.Hidden)
}

// stateSpaceWidth returns the width of [z, x, B, C, dt].
func stateSpaceWidth(s recurrent.StateSpace) int { return 2*s.Inner() + 2*s.Groups*s.Len + s.Heads }

// stateSpace loads that of layer i, number layer among the recurrent ones, without in.
func (l *loader) stateSpace(i, layer int, shape recurrent.Shape) *stateSpace {
	c, name, s := &l.cfg, layerNames(i), shape.StateSpace
	m := &stateSpace{shape: s, layer: layer, stride: stateSpaceWidth(s)}
	channels := shape.Channels()
	m.Conv = transposed(l.Array(name("ssm_conv1d.weight"), shape.Taps, channels), shape.Taps, channels)
	m.ConvBias = l.OptionalVector(name("ssm_conv1d.bias"), channels)
	m.A, m.D, m.DT = l.Array(name("ssm_a"), 1, s.Heads), l.Array(name("ssm_d"), 1, s.Heads), l.Vector(name("ssm_dt.bias"), s.Heads)
	l.checkDecays(name("ssm_a"), m.A)
	if norm := name("ssm_norm.weight"); l.file.Tensor(norm) != nil {
		m.norm = l.Array(norm, s.Inner()/s.Groups, s.Groups)
	}
	m.out = l.Matrix(name("ssm_out.weight"), c.Hidden, s.Inner())
	m.onOut = l.target(s.Inner(), &rotation{}, whole(name("ssm_out.weight"), c.Hidden))
	return m
}

// checkDecays fails on the factors of a state's decays, a tensor, that would let it grow.
func (l *loader) checkDecays(name string, factors []float32) {
	for h, a := range factors {
		if a > 0 {
			l.Fail("tensor %s: element %d is %v: the state would grow", name, h, a)
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
	s.acts.Set(s.h, s.rows, s.cfg.Hidden)
	m.in.Mul(s.qkv, &s.acts, &s.part)
	s.adapt(s.qkv, m.onIn)
	m.scan(s)
}

// scan does that for rows whose z, x, B, C and dt have been made.
func (m *stateSpace) scan(s *rowShard) {
	s.rec.Run(s.qkv[m.at+m.shape.Inner():s.rows*m.stride], m.stride, nil, s.spans, m.layer, &m.Weights)
}

// attend turns the outputs into y.
func (m *stateSpace) attend(s *rowShard) {
	s.ops.gateStates(s, m)
	s.acts.Set(s.a, s.rows, m.shape.Inner())
	m.out.Mul(s.y, &s.acts)
	s.adapt(s.y, m.onOut)
}

// gateStates sets a of the rows to norm(outputs · silu(z)).
func (o *rowOps) gateStates(s *rowShard, m *stateSpace) {
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

// besideStates is attention and a state space side by side (Falcon-LLM Team 2025,
// "Falcon-H1", §2.1): both read h, and what they make is added. One product makes the rows
// of both, [q, k, v, z, x, B, C, dt].
type besideStates struct {
	*selfAttention
	states *stateSpace
}

// besideStates sets up both of layer i.
func (l *loader) besideStates(i int, a *selfAttention, shape recurrent.Shape) *besideStates {
	m := l.stateSpace(i, i, shape)
	m.at, m.stride = a.q+2*a.kv, a.qkv.Sum
	return &besideStates{selfAttention: a, states: m}
}

// project makes the rows, and notes what later ones will see of them.
func (b *besideStates) project(s *rowShard) {
	b.selfAttention.project(s)
	b.states.scan(s)
}

// attend turns them into y.
func (b *besideStates) attend(s *rowShard) {
	b.selfAttention.attend(s)
	copy(s.h, s.y[:s.rows*s.cfg.Hidden]) // not in use between norms
	b.states.attend(s)
	s.ops.add(s.y, s.h, s.rows, s.cfg.Hidden)
}
