package kernels

import (
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/dense"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

// PieceRows divides the rows of every piece that a Builder takes but the last.
const PieceRows = ternary.StripRows

// unit returns how many rows of a packing are stored together, and their size with cols
// columns.
func unit(p matrix.Packing, cols int) (rows, bytes int) {
	switch p.Kind() {
	case meter.Ternary:
		return PieceRows, ternary.Size(PieceRows, cols, p)
	case meter.Grouped:
		return bands.Rows, grouped.BandBytes(p, cols)
	}
	return bands.Rows, dense.BandBytes(p, cols)
}

// UnitRows returns how many rows of a packing are stored together: matrices that others lie beneath end there.
func UnitRows(p matrix.Packing) int {
	rows, _ := unit(p, 1)
	return rows
}

// DataSize returns the length of the Data of a matrix, in bytes.
func DataSize(rows, cols int, p matrix.Packing) int {
	n, size := unit(p, cols)
	return (rows + n - 1) / n * size
}

// Builder makes a matrix from pieces of its rows, so that a large matrix needs little
// more than its own memory while it is built. A row keeps its bits.
type Builder struct {
	arena *cpu.Arena
	m     *matrix.Matrix // Scale is one a row so far
	at    int            // rows so far

	offsets *Builder // nil: there are none
}

// NewBuilder begins a matrix of rows in a. A nil arena means the heap.
func NewBuilder(a *cpu.Arena, rows int) *Builder {
	return &Builder{arena: a, m: &matrix.Matrix{Rows: rows}}
}

// Alike reports whether rows of a and b may lie in one matrix.
func Alike(a, b *matrix.Matrix) bool {
	if a.Packing != b.Packing || a.Cols != b.Cols || (a.Offsets == nil) != (b.Offsets == nil) {
		return false
	}
	if a.Levels != b.Levels && (a.Levels == nil || b.Levels == nil || *a.Levels != *b.Levels) {
		return false
	}
	return a.Offsets == nil || Alike(a.Offsets, b.Offsets)
}

// Add puts a copy of m beneath the rows so far. It reports ErrUnsupported when m has another packing, other levels
// or another width, or when the rows so far do not end with a unit of the packing (PieceRows do). Too many rows
// are ErrShape; without memory it reports ErrMemory.
func (b *Builder) Add(m *matrix.Matrix) (err error) {
	w := b.m
	unit, size := unit(m.Packing, m.Cols)
	if w.Data == nil {
		w.Packing, w.Cols, w.Levels = m.Packing, m.Cols, m.Levels
		if w.Data, err = b.arena.Bytes(DataSize(w.Rows, m.Cols, m.Packing)); err != nil {
			return err
		}
		if m.Offsets != nil {
			b.offsets = NewBuilder(b.arena, w.Rows)
			w.Offsets = b.offsets.m
			w.Offsets.Packing, w.Offsets.Cols = m.Offsets.Packing, m.Offsets.Cols
		}
	}
	if !Alike(m, w) || b.at%unit != 0 {
		return fmt.Errorf("%w: %v of %dx%d beneath %v of %dx%d", matrix.ErrUnsupported, m.Packing, m.Rows, m.Cols, w.Packing, b.at, w.Cols)
	}
	if m.Rows > w.Rows-b.at {
		return fmt.Errorf("%w: %d rows beneath %d of %d", matrix.ErrShape, m.Rows, b.at, w.Rows)
	}
	copyParallel(w.Data[b.at/unit*size:], m.Data)
	b.at += m.Rows
	if b.offsets != nil {
		if err := b.offsets.Add(m.Offsets); err != nil {
			return err
		}
	}
	if len(m.Scale) == 1 {
		w.Scale = append(w.Scale, slices.Repeat(m.Scale, m.Rows)...)
	} else {
		w.Scale = append(w.Scale, m.Scale...)
	}
	return nil
}

// copyParallel copies src on all cores: the system clears fresh memory when it is first
// written to, which takes longer than the copying.
func copyParallel(dst, src []byte) {
	const part = 2 << 20 // a huge page
	matrix.Parallel((len(src)+part-1)/part, func(i int) {
		copy(dst[i*part:], src[i*part:min(len(src), (i+1)*part)])
	})
}

// Matrix returns the whole matrix. It reports ErrShape when rows are missing.
func (b *Builder) Matrix() (*matrix.Matrix, error) {
	if b.at != b.m.Rows {
		return nil, fmt.Errorf("%w: %d rows of %d", matrix.ErrShape, b.at, b.m.Rows)
	}
	if s := b.m.Scale; len(s) > 0 && !slices.ContainsFunc(s, func(x float32) bool { return x != s[0] }) {
		b.m.Scale = []float32{s[0]}
	}
	return b.m, nil
}

// Stack puts matrices on top of one another, in a: one product in place of
// several that read the same input. A nil arena means the heap. It reports
// ErrMemory, and ErrUnsupported, before it takes any memory, when they differ in
// packing or columns or another than the last ends within a unit of its packing.
func Stack(a *cpu.Arena, ms ...*matrix.Matrix) (*matrix.Matrix, error) {
	rows := 0
	for i, m := range ms {
		unit, _ := unit(m.Packing, m.Cols)
		if !Alike(m, ms[0]) || i+1 < len(ms) && m.Rows%unit != 0 {
			return nil, fmt.Errorf("%w: %v of %dx%d stacked with %v of %dx%d", matrix.ErrUnsupported, m.Packing, m.Rows, m.Cols, ms[0].Packing, ms[0].Rows, ms[0].Cols)
		}
		rows += m.Rows
	}
	b := NewBuilder(a, rows)
	for _, m := range ms {
		if err := b.Add(m); err != nil {
			return nil, err
		}
	}
	return b.Matrix()
}
