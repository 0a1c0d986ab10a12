package recurrent

import (
	"math"

	"github.com/lutra-lm/lutra/kernels/delta"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// StateSpace is the size of a selective state space (Dao and Gu 2024, "Transformers are
// SSMs", §6: Mamba-2). Groups of heads share the inputs B and C. Zero: a layer has none.
//
//	state = exp(dt·A)·state + dt·x·Bᵀ        dt = softplus(dt + bias)
//	y = state·C + D·x
type StateSpace struct {
	Heads, HeadDim int // of x
	Groups         int // of B and C
	Len            int // of B and C of a group
}

// Inner returns the numbers of x of a token.
func (s StateSpace) Inner() int { return s.Heads * s.HeadDim }

// channels returns the numbers of x, B and C of a token.
func (s StateSpace) channels() int { return s.Inner() + 2*s.Groups*s.Len }

// size returns the numbers of the states of all heads, each as package delta has it.
func (s StateSpace) size() int { return s.Heads * delta.SpaceSize(s.HeadDim, s.Len) }

// scratch returns the numbers that scan needs besides: x and y of some tokens of a head.
func (s StateSpace) scratch() int { return 2 * delta.SpaceTokens * delta.SpaceDim(s.HeadDim) }

// scan takes a span through the state of one head. Its outputs take the place of x.
func (p *Pass) scan(worker, part int) {
	s, sp, head := &p.shape.StateSpace, &p.spans[part/p.shape.StateSpace.Heads], part%p.shape.StateSpace.Heads
	size := delta.SpaceSize(s.HeadDim, s.Len)
	lo := p.at + p.shape.tail() + head*size
	state := sp.State[lo : lo+size]
	from := 0
	for _, c := range sp.Copies {
		p.scanRows(worker, head, state, sp.First+from, sp.First+c.After)
		sp.save(c, lo, lo+size)
		from = c.After
	}
	p.scanRows(worker, head, state, sp.First+from, sp.First+sp.N)
}

// scanRows takes rows [from, to) through the state of a head.
func (p *Pass) scanRows(worker, head int, state []float32, from, to int) {
	s := &p.shape.StateSpace
	dim := delta.SpaceDim(s.HeadDim)
	x, y := p.scratch[worker][:delta.SpaceTokens*dim], p.scratch[worker][delta.SpaceTokens*dim:]
	b := s.Inner() + head*s.Groups/s.Heads*s.Len
	c := b + s.Groups*s.Len
	own := func(row int) []float32 { return p.rows[row*p.stride+head*s.HeadDim:][:s.HeadDim] }
	for at := from; at < to; at += delta.SpaceTokens {
		n := min(delta.SpaceTokens, to-at)
		var decays [delta.SpaceTokens]float32
		for t := range n {
			dt := delta.Softplus(float64(p.rows[(at+t)*p.stride+s.channels()+head]) + float64(p.w.DT[head]))
			decays[t] = float32(math.Exp(dt * float64(p.w.A[head])))
			vector.Scale(x[t*dim:][:s.HeadDim], own(at+t), float32(dt)) // what follows stays zero
		}
		delta.Space(state, dim, s.Len, n, x, y, p.rows[at*p.stride+b:], p.rows[at*p.stride+c:], p.stride, decays[:])
		for t := range n {
			sum := y[t*dim:][:s.HeadDim]
			vector.Axpy(sum, p.w.D[head], own(at+t))
			copy(own(at+t), sum)
		}
	}
}
