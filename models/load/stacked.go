package load

import (
	"errors"
	"slices"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/models/gguf"
)

// Stacked is matrices that read the same rows; their outputs stand side by
// side. Where they are of one packing it is one product.
type Stacked struct {
	whole kernels.Linear // nil: parts
	parts []kernels.Linear
	of    []Part
	Width []int // outputs of the parts
	Sum   int   // of Width
	// Rows tells what the outputs are products with, part by part.
	Rows []Rows
	// Packings lists the packings of the matrices, each once.
	Packings []matrix.Packing
}

// Stored is rows of a stored matrix that Stack reads.
type Stored struct {
	t      *gguf.Tensor
	lo, hi int
	factor float32
}

// Tensor returns the name of the tensor that has the rows.
func (s *Stored) Tensor() string { return s.t.Name }

// add notes rows that s multiplies by.
func (s *Stacked) add(m *Stored) {
	if part := partOf(m.t, m.lo); !slices.Contains(s.of, part) {
		s.of = append(s.of, part)
	}
	s.Rows = append(s.Rows, Rows{m.t.Name, m.lo, m.hi - m.lo, m.t.Rows()})
	s.Width = append(s.Width, m.hi-m.lo)
	s.Sum += m.hi - m.lo
}

// Stack reads matrices piece by piece, and loads them as one if they allow it. After a failure it
// loads nothing, and some of them may be nil.
func (t *Tensors) Stack(stored ...*Stored) Stacked {
	s := Stacked{}
	if t.Err() != nil {
		return s
	}
	for _, m := range stored {
		s.add(m)
	}
	arena := t.arena()
	before := arena.Mark()
	whole, err := t.stack(arena, t.form, stored)
	switch {
	case err == nil:
		s.whole = t.observed(t.packed(&s, whole), s.of)
		return s
	case !errors.Is(err, matrix.ErrUnsupported):
		t.Fail("%w", err)
		return s
	}
	arena.Reset(before)
	for _, m := range stored {
		alone, err := t.build(arena, t.form, m)
		if err != nil {
			t.Fail("%w", err)
			return s
		}
		s.parts = append(s.parts, t.packed(&s, alone))
	}
	s.parts[0] = t.observed(s.parts[0], s.of) // all read the same rows
	return s
}

// packed accounts for a matrix of s and makes it ready to multiply.
func (t *Tensors) packed(s *Stacked, m *matrix.Matrix) kernels.Linear {
	if !slices.Contains(s.Packings, m.Packing) {
		s.Packings = append(s.Packings, m.Packing)
	}
	t.account(s.Rows[0].Tensor, m)
	lin, err := t.load(m)
	if err != nil {
		t.Fail("a matrix of %dx%d: %w", m.Rows, m.Cols, err)
		return nil
	}
	return lin
}

// Device returns the product of all matrices on the backend that they were loaded for, or on the CPU if that has
// not taken it; nil if they are several products.
func (m *Stacked) Device() kernels.Linear { return device(m.whole) }

// Devices returns those products, one or several.
func (m *Stacked) Devices() (all []kernels.Linear) {
	if m.whole != nil {
		return []kernels.Linear{device(m.whole)}
	}
	for _, p := range m.parts {
		all = append(all, device(p))
	}
	return all
}

// device returns a product as the backend has it, if that has taken the matrix.
func device(l kernels.Linear) kernels.Linear {
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
