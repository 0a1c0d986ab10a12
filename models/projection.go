package models

import (
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/load"
)

// Projection makes the vector of a text from its pooled hidden state: each matrix reads what the one before
// it has made, the first one the state. These are Dense modules of sentence-transformers, without biases.
// Empty: the state is the vector.
type Projection []dense

// dense is a matrix, [out][in].
type dense struct {
	weights []float32
	in      int
}

// Width returns the number of elements of a vector whose state has that many.
func (p Projection) Width(state int) int {
	if len(p) == 0 {
		return state
	}
	last := &p[len(p)-1]
	return len(last.weights) / last.in
}

// Apply returns the vector of a state.
func (p Projection) Apply(state []float32) []float32 {
	for _, m := range p {
		made := make([]float32, len(m.weights)/m.in)
		for i := range made {
			made[i] = vector.Dot(m.weights[i*m.in:(i+1)*m.in], state)
		}
		state = made
	}
	return state
}

// loadProjection loads it, by the names of llama.cpp's converter: the modules stand second and third.
func loadProjection(t *tensors, m *spec) (p Projection) {
	in := m.Hidden
	for _, name := range []string{"dense_2.weight", "dense_3.weight"} {
		x := t.File().Tensor(name)
		if x == nil || t.Err() != nil {
			continue
		}
		out := x.Rows()
		if out > load.MaxDim {
			t.Fail("tensor %s has %d rows, at most %d are read", name, out, load.MaxDim)
			return nil
		}
		p = append(p, dense{t.Vector(name, in, out), in})
		in = out
	}
	return p
}
