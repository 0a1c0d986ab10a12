package weights

import (
	"errors"
	"slices"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// Stacked is matrices that read the same rows; their outputs stand side by
// side. Where they are of one packing it is one product.
type Stacked struct {
	whole kernels.Linear // nil: parts
	parts []kernels.Linear
	Width []int // outputs of the parts
	Sum   int   // of Width
	// Rows tells what the outputs are products with, part by part.
	Rows []Rows
	// Packings is what the matrices have, each once.
	Packings []matrix.Packing
}

// Stack loads matrices, which are in the heap, as one if they allow it. Some are
// nil after a failure. Their memory is recycled.
func (l *Loader) Stack(ms ...*matrix.Matrix) Stacked {
	s := Stacked{}
	var of []Part
	for _, m := range ms {
		if m == nil {
			return s
		}
		from := l.from[m]
		delete(l.from, m)
		if !slices.Contains(of, from.part) {
			of = append(of, from.part)
		}
		s.Rows = append(s.Rows, from.rows)
		s.Width = append(s.Width, m.Rows)
		s.Sum += m.Rows
		if !slices.Contains(s.Packings, m.Packing) {
			s.Packings = append(s.Packings, m.Packing)
		}
	}
	defer matrix.Recycle(ms...)
	whole, err := kernels.Stack(l.arena(), ms...)
	switch {
	case err == nil:
		s.whole = l.observed(l.load(whole), of...)
		return s
	case !errors.Is(err, matrix.ErrUnsupported):
		l.Fail("%w", err)
		return s
	}
	for _, m := range ms {
		alone, err := kernels.Stack(l.arena(), m)
		if err != nil {
			l.Fail("%w", err)
			return s
		}
		s.parts = append(s.parts, l.load(alone))
	}
	s.parts[0] = l.observed(s.parts[0], of...) // all read the same rows
	return s
}

// Device returns the product of all matrices on the backend that they were loaded for, or
// on the CPU where that has not taken it; nil if they are several products.
func (m *Stacked) Device() kernels.Linear { return Device(m.whole) }

// Devices returns those products, one or several.
func (m *Stacked) Devices() (all []kernels.Linear) {
	if m.whole != nil {
		return []kernels.Linear{Device(m.whole)}
	}
	for _, p := range m.parts {
		all = append(all, Device(p))
	}
	return all
}

// Device returns a product as the backend has it, if that has taken the matrix.
func Device(l kernels.Linear) kernels.Linear {
	if s, ok := l.(spare); ok {
		return s.device
	}
	return l
}

// spare is a matrix of a backend, and the CPU's copy for when that has failed.
type spare struct {
	backend     kernels.Backend
	device, cpu kernels.Linear
}

// Mul multiplies on the backend while it has no fault.
func (s spare) Mul(y []float32, x *kernels.Acts) {
	if s.backend.Err() == nil {
		s.device.Mul(y, x)
	} else {
		s.cpu.Mul(y, x)
	}
}

// Mul sets y[rows][Sum] to the products of acts. Matrices that are not one
// product need scratch, which grows to the largest of them.
func (m *Stacked) Mul(y []float32, acts *kernels.Acts, scratch *[]float32) {
	if m.whole != nil {
		m.whole.Mul(y, acts)
		return
	}
	at, n := 0, acts.N()
	for i, p := range m.parts {
		width := m.Width[i]
		if cap(*scratch) < n*width {
			*scratch = make([]float32, n*width)
		}
		part := (*scratch)[:n*width]
		p.Mul(part, acts)
		for row := range n {
			copy(y[row*m.Sum+at:], part[row*width:(row+1)*width])
		}
		at += width
	}
}
