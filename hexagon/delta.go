package hexagon

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/ref"
	"github.com/lutra-lm/lutra/kernels/delta"
)

// deltaNet is a gated delta net as the device has it, beside its convolution: columns of its products' outputs, and
// weights.
type deltaNet struct {
	z, gates, n        int // where z and the gates begin, and how many of these are computed
	decay, beta        int // among the gates
	weights            uint32
	queryNorm, outNorm uint32
}

// deltaNet takes a layer's delta net. It returns the reason where it does not.
func (d *layerPlan) deltaNet(a *arena, l *layer) (why string) {
	x, s := l.Delta, l.qkv
	z, gates := len(l.QKV)-1, len(x.Gates)
	if d.m.Parallel || x.Width%32 != 0 || x.ValueHeads%x.KeyHeads != 0 || x.ValueHeads > device.MaxDim/32 || z > 1 || gates > 2 {
		return "the device does not know the sizes of its delta net"
	}
	if len(s.parts) == len(l.QKV) {
		if l.gates = newStack(a, &d.vectors, d.m.Hidden, x.Gates...); l.gates == nil {
			return "the device does not hold the matrices of a delta net's gates"
		}
	}
	if why := d.tails.take(l, tailShape{taps: x.Taps, channels: x.Channels(), heads: x.ValueHeads, width: x.Width}, x.Conv); why != "" {
		return why
	}
	cols := slices.Clone(s.col)
	if l.gates != nil {
		for _, col := range l.gates.col {
			cols = append(cols, s.width+col)
		}
	}
	n := &deltaNet{z: x.Channels(), gates: cols[z+1], decay: x.ValueHeads}
	if z > 0 {
		n.z = cols[z]
	}
	if gates > 1 {
		n.decay = cols[z+2] - n.gates
	}
	n.n = roundUp(n.decay+x.ValueHeads, 32)
	weights := make([]float32, 3*n.n) // of x, added to it, and of the softplus: see OpGates
	for h := range x.ValueHeads {
		weights[n.beta+h], weights[2*n.n+n.beta+h] = -1, -1
		weights[n.decay+h], weights[n.n+n.decay+h], weights[2*n.n+n.decay+h] = 1, x.DT[h], x.A[h]
	}
	scale := make([]float32, x.Width)
	for i := range scale {
		scale[i] = float32(1 / math.Sqrt(float64(x.Width)))
	}
	l.taps = d.vectors.add(a, x.Conv, len(x.Conv))
	n.weights, n.queryNorm, n.outNorm = d.vectors.add(a, weights, len(weights)), d.vectors.add(a, scale, len(scale)), d.vectors.add(a, x.Norm, len(x.Norm))
	l.delta = n
	return ""
}

// deltaNet queues a layer's delta net, from q, k, v, z and gates on. It returns what O reads.
func (r *step) deltaNet(l *layer, qkvz span) span {
	x, d, of, n := l.Delta, l.delta, r.plan.at.att, uint32(r.n)
	out := of.from(x.Channels())
	r.rec.conv(l, of, qkvz, 1)
	norm := func(heads span, weight uint32) { // to a length of 1
		r.q.add(device.OpRMSNorm, heads.at, heads.at, weight, n, uint32(x.KeyHeads), uint32(x.Width), of.stride, of.stride, oneBits, math.Float32bits(r.plan.m.Eps*r.plan.m.Eps))
	}
	norm(of, d.queryNorm)
	norm(of.from(x.KeyHeads*x.Width), 0)
	gates := qkvz.from(d.gates)
	r.q.add(device.OpGates, gates.at, gates.at, d.weights, n, uint32(d.n), gates.stride, gates.stride)
	r.rec.update(l, out, of, gates)
	r.q.norm(out, out, d.outNorm, r.n, x.ValueHeads, x.Width, r.plan.m.Eps)
	r.q.gate(unit{kind: ref.GLUSiLU}, out, qkvz.from(d.z), out, r.n, x.Values())
	return out
}

// update queues the way of rows through their states, span by span.
func (r *recurrence) update(l *layer, out, x, gates span) {
	t, d := r.tails, l.Delta
	grouped := uint32(0)
	if d.Grouped {
		grouped = 1
	}
	for i := range r.parts {
		p := &r.parts[i]
		sp, of := &r.s.Spans[p.span], &t.spans[p.span]
		state := t.statesAt(of.slot, l)
		from := state
		switch {
		case p.done > 0 || t.has(sp, of.slot, l):
		case sp.From == 0:
			from = 0
		default:
			t.takeStates(sp.State, of.slot, l, sp.Position)
		}
		run := func(from, to uint32, first, n int) {
			r.q.add(device.OpDelta, out.row(first).at, x.row(first).at, gates.row(first).at, from, to, uint32(n), uint32(d.KeyHeads), uint32(d.ValueHeads/d.KeyHeads), uint32(d.Width),
				out.stride, x.stride, gates.stride, uint32(l.delta.decay), uint32(l.delta.beta), grouped)
		}
		if !t.marks(sp, p) {
			run(from, state, p.first, p.n)
			continue
		}
		mark, n := t.statesAt(of.marked, l), sp.Copies[0].After-p.done
		run(from, mark, p.first, n)
		run(mark, state, p.first+n, p.n-n)
	}
}

// takeStates gives a slot the states of a layer after position tokens.
func (t *tails) takeStates(all []float32, slot int32, l *layer, position int) {
	size, host := t.width*t.width, delta.Size(t.width)
	to, from := device.View[float32](t.q.mem, t.statesAt(slot, l), t.states()), all[l.state()+t.rows():]
	for h := range t.heads {
		delta.Flatten(to[h*size:][:size], from[h*host:][:host], t.width, position)
	}
	t.q.count(&t.q.work.Written, 4*t.states())
}

// giveStates sets a layer's states, after position tokens, to a slot's.
func (t *tails) giveStates(all []float32, slot int32, l *layer, position int) {
	t.restore(all, device.View[float32](t.q.mem, t.statesAt(slot, l), t.states()), l, position)
	t.q.count(&t.q.work.Read, 4*t.states())
}

// restore sets the states of a layer, after position tokens, to those that a slot has had.
func (t *tails) restore(all, from []float32, l *layer, position int) {
	size, host := t.width*t.width, delta.Size(t.width)
	to := all[l.state()+t.rows():]
	for h := range t.heads {
		delta.Restore(to[h*host:][:host], from[h*size:][:size], t.width, position)
	}
}
