package models

import (
	"errors"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// stacked is matrices that read the same rows; their outputs stand side by
// side. Where they are of one packing it is one product.
type stacked struct {
	whole kernels.Linear // nil: parts
	parts []kernels.Linear
	width []int // outputs of the parts
	sum   int
}

// stack loads matrices, which are in the heap, as one if they allow it. Some are
// nil after a failure.
func (l *loader) stack(ms ...*matrix.Matrix) stacked {
	s := stacked{}
	for _, m := range ms {
		if m == nil {
			return s
		}
		s.width = append(s.width, m.Rows)
		s.sum += m.Rows
	}
	whole, err := kernels.Stack(l.memory, ms...)
	switch {
	case err == nil:
		s.whole = l.load(whole)
		return s
	case !errors.Is(err, matrix.ErrUnsupported):
		l.fail("%w", err)
		return s
	}
	for _, m := range ms {
		alone, err := kernels.Stack(l.memory, m)
		if err != nil {
			l.fail("%w", err)
			return s
		}
		s.parts = append(s.parts, l.load(alone))
	}
	return s
}

// mul sets y[rows][sum] to the products of the shard's acts.
func (m *stacked) mul(y []float32, s *rowShard) {
	if m.whole != nil {
		m.whole.Mul(y, &s.acts)
		return
	}
	at, n := 0, s.acts.N()
	for i, p := range m.parts {
		width := m.width[i]
		s.part = grown(s.part, n*width)
		p.Mul(s.part, &s.acts)
		for row := range n {
			copy(y[row*m.sum+at:], span(s.part, row, width))
		}
		at += width
	}
}

// grown is x with room for n elements; what it held is lost when it grows.
func grown(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n)
	}
	return x[:n]
}
