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

// size returns the numbers of the states of all heads, [Heads][HeadDim][Len].
func (s StateSpace) size() int { return s.Inner() * s.Len }

// activate adds the convolution's bias to what it made of x, B and C of a row, of which the
// SiLU remains, and turns the row's dt, which follow them, into steps.
func (p *Pass) activate(_, row int) {
	s := &p.shape.StateSpace
	x := p.rows[row*p.stride:]
	all := x[:s.channels()]
	if p.w.ConvBias != nil {
		vector.AddInto(all, p.w.ConvBias)
	}
	var one [delta.Channels]float32
	for i := range one {
		one[i] = 1
	}
	for lo := 0; lo < len(all); lo += len(one) {
		part := all[lo:min(len(all), lo+len(one))]
		vector.SwiGLU(part, part, one[:len(part)])
	}
	for h, dt := range x[len(all):][:s.Heads] {
		x[len(all)+h] = float32(delta.Softplus(float64(dt) + float64(p.w.DT[h])))
	}
}

// scan takes a span through the state of one head. Its outputs take the place of x.
func (p *Pass) scan(_, part int) {
	s, sp, head := &p.shape.StateSpace, &p.spans[part/p.shape.StateSpace.Heads], part%p.shape.StateSpace.Heads
	size := s.HeadDim * s.Len
	lo := p.at + p.shape.tail() + head*size
	state := sp.State[lo : lo+size]
	b := s.Inner() + head*s.Groups/s.Heads*s.Len
	c := b + s.Groups*s.Len
	for i := range sp.N {
		row := p.rows[(sp.First+i)*p.stride:]
		x, dt := row[head*s.HeadDim:(head+1)*s.HeadDim], row[s.channels()+head]
		vector.ScaleInto(state, float32(math.Exp(float64(dt)*float64(p.w.A[head]))))
		for k, v := range x {
			of := state[k*s.Len : (k+1)*s.Len]
			vector.Axpy(of, dt*v, row[b:b+s.Len])
			x[k] = vector.Dot(of, row[c:c+s.Len]) + p.w.D[head]*v
		}
		if sp.Copy != nil && i+1 == sp.CopyAt {
			copy(sp.Copy[lo:lo+size], state)
		}
	}
}
