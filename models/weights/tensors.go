package weights

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/models/gguf"
)

// Tensor finds the tensor of that name and shape (fastest dimension first), as
// it stands in the file.
func (l *Loader) Tensor(name string, dims ...int) *gguf.Tensor { return l.tensor(name, false, dims...) }

// tensor finds the Tensor, nil when it is optional and missing.
func (l *Loader) tensor(name string, optional bool, dims ...int) *gguf.Tensor {
	if l.err != nil {
		return nil
	}
	l.used[name], l.latest = true, name
	t := l.file.Tensor(name)
	if t == nil {
		if !optional {
			l.Fail("tensor %s is missing", name)
		}
		return nil
	}
	// Trailing ones do not change a shape.
	if got := trimOnes(t.Dims); !slices.Equal(got, trimOnes(dims)) {
		l.Fail("tensor %s has shape %v, want %v", name, t.Dims, dims)
		return nil
	}
	if !t.Type.Supported() {
		l.Fail("tensor %s has storage type %v, which is not supported", name, t.Type)
		return nil
	}
	return t
}

func trimOnes(dims []int) []int {
	for len(dims) > 1 && dims[len(dims)-1] == 1 {
		dims = dims[:len(dims)-1]
	}
	return dims
}

// Vector reads a one-dimensional tensor of n numbers.
func (l *Loader) Vector(name string, n int) []float32 { return l.floats(name, false, n) }

// OptionalVector reads what Vector does, or returns nil when the tensor is missing.
func (l *Loader) OptionalVector(name string, n int) []float32 { return l.floats(name, true, n) }

// Array reads a tensor of numbers that are used as they are, the first dimension the
// innermost.
func (l *Loader) Array(name string, dims ...int) []float32 { return l.floats(name, false, dims...) }

func (l *Loader) floats(name string, optional bool, dims ...int) []float32 {
	t := l.tensor(name, optional, dims...)
	if t == nil {
		return nil
	}
	if err := l.interrupted(); err != nil {
		l.Fail("%w", err)
		return nil
	}
	n := t.Len()
	v := make([]float32, n)
	if err := t.Dequantize(v, 0); err != nil {
		l.Fail("%w", err)
	}
	for i, x := range v {
		if x-x != 0 {
			l.Fail("tensor %s: element %d is %v", name, i, x)
			break
		}
	}
	if strings.HasSuffix(name, "norm.weight") {
		l.zero[name] = !slices.ContainsFunc(v, func(x float32) bool { return x != 0 })
	}
	l.progress(t.Bytes())
	l.Params += int64(n)
	l.Bytes += 4 * int64(n)
	return v
}

// Matrix reads W[rows][cols], packed and loaded onto the backend, or the CPU
// where the backend does not run its packing.
func (l *Loader) Matrix(name string, rows, cols int) kernels.Linear {
	w := l.fullMatrix(name, rows, cols, l.opt)
	if w != nil {
		l.account(name, w)
	}
	return l.observed(l.load(w), Part{Tensor: name, Matrices: 1})
}

// Wide reads W[rows][cols] in float32 on the CPU, whatever its storage type and the
// backend: its products have activations of float32. It is not among Packings.
func (l *Loader) Wide(name string, rows, cols int) kernels.Linear {
	opt := l.opt
	opt.Exact = true
	w := l.fullMatrix(name, rows, cols, opt)
	if w == nil {
		return nil
	}
	l.count(w)
	lin, err := l.loadHere(w)
	if err != nil {
		l.Fail("tensor %s: %w", name, err)
		return nil
	}
	return l.observed(lin, Part{Tensor: name, Matrices: 1})
}

// fullMatrix reads a stored matrix in its packing, or nil after a failure.
func (l *Loader) fullMatrix(name string, rows, cols int, opt Options) *matrix.Matrix {
	t := l.tensor(name, false, cols, rows)
	if t == nil {
		return nil
	}
	w, err := l.build(opt, &Stored{t, 0, rows, l.factor(t, 0)})
	if err != nil {
		l.Fail("%w", err)
		return nil
	}
	return w
}

// pieceBytes is about how much of a matrix is read and packed at a time, so that
// a large vocabulary needs no second copy of itself, and what is read is still cached
// when it is packed.
var pieceBytes = 2 << 20 * runtime.GOMAXPROCS(0)

// build packs one after the other, piece by piece. It reports ErrUnsupported where they are not of one
// packing. One alone whose pieces are not, for some are ternary or of other scales, is packed as it is
// stored, or else widened.
func (l *Loader) build(opt Options, stored ...*Stored) (*matrix.Matrix, error) {
	rows := 0
	for _, s := range stored {
		rows += s.hi - s.lo
	}
	arena := l.arena()
	before, b := arena.Mark(), kernels.NewBuilder(arena, rows)
	for _, s := range stored {
		err := l.add(b, s, opt)
		if len(stored) == 1 && errors.Is(err, matrix.ErrUnsupported) && !opt.Exact {
			arena.Reset(before)
			opt.Packing, opt.Exact = PackingStored, opt.Packing == PackingStored
			return l.build(opt, s)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", s.t.Name, err)
		}
	}
	return b.Matrix()
}

// add packs pieces beneath the rows of b.
func (l *Loader) add(b *kernels.Builder, s *Stored, opt Options) error {
	piece := max(1, pieceBytes/max(1, s.t.Bytes()/s.t.Rows())/kernels.PieceRows) * kernels.PieceRows
	for lo := s.lo; lo < s.hi; lo += piece {
		w, err := l.packRows(s.t, lo, min(s.hi, lo+piece), s.factor, opt)
		if err == nil {
			err = b.Add(w)
			matrix.Recycle(w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// packRows packs rows [lo, hi) of t in the heap.
func (l *Loader) packRows(t *gguf.Tensor, lo, hi int, factor float32, opt Options) (*matrix.Matrix, error) {
	if err := l.interrupted(); err != nil {
		return nil, err
	}
	part, err := t.Load(lo, hi, l.raw)
	if err != nil {
		return nil, err
	}
	if t.Data == nil {
		l.raw = part.Data
	}
	l.progress(len(part.Data))
	if err := finite(part); err != nil {
		return nil, err
	}
	if zero, seen := l.zero[t.Name]; !seen || zero {
		if l.zero[t.Name], err = holdsZeros(part); err != nil {
			return nil, err
		}
	}
	return pack(part, factor, opt)
}

// finite reports a number or scale of a tensor in memory that is infinite or NaN.
func finite(t *gguf.Tensor) error {
	var bad atomic.Int64
	bad.Store(-1)
	parallel.Ranges(t.Rows(), func(lo, hi int) {
		if row, ok := t.Finite(lo, hi); !ok {
			bad.Store(int64(row))
		}
	})
	if row := bad.Load(); row >= 0 {
		return fmt.Errorf("row %d holds a number that is infinite or NaN", row)
	}
	return nil
}

// holdsZeros tells whether a tensor in memory holds nothing else.
func holdsZeros(t *gguf.Tensor) (bool, error) {
	values := make([]float32, t.Cols())
	for r := range t.Rows() {
		if err := t.Dequantize(values, r*len(values)); err != nil {
			return false, err
		}
		if slices.ContainsFunc(values, func(x float32) bool { return x != 0 }) {
			return false, nil
		}
	}
	return true, nil
}

// Whole finds a stored matrix for Stack, or nil after a failure.
func (l *Loader) Whole(name string, rows, cols int) *Stored { return l.Part(name, rows, 0, rows, cols) }

// Part finds what Whole does, of rows [lo, hi) of a stored matrix of rows.
func (l *Loader) Part(name string, rows, lo, hi, cols int) *Stored {
	return l.part(l.tensor(name, false, cols, rows), lo, hi)
}

// Rows finds what Whole does, of rows [lo, hi) of a stored tensor of those dimensions, the first
// the innermost, of which all but that one count as rows.
func (l *Loader) Rows(name string, lo, hi int, dims ...int) *Stored {
	return l.part(l.tensor(name, false, dims...), lo, hi)
}

// part finds rows [lo, hi) of t, which is nil after a failure.
func (l *Loader) part(t *gguf.Tensor, lo, hi int) *Stored {
	if t == nil {
		return nil
	}
	factor := l.factor(t, lo)
	if l.err != nil {
		return nil
	}
	return &Stored{t, lo, hi, factor}
}

// account adds a packed matrix to the totals and the packings.
func (l *Loader) account(name string, w *matrix.Matrix) {
	l.count(w)
	if strings.HasPrefix(name, "blk.") {
		l.packings[w.Packing.String()] = true
	}
}

// count adds a packed matrix to the totals.
func (l *Loader) count(w *matrix.Matrix) {
	l.Params += int64(w.Rows) * int64(w.Cols)
	l.Bytes += int64(w.Bytes())
}

// arena returns where matrices are built: that of the loader, or the heap where a backend
// will have its own copy.
func (l *Loader) arena() *cpu.Arena {
	if l.Local() {
		return l.memory
	}
	return nil
}

// load makes w, unless it is nil, ready to multiply.
func (l *Loader) load(w *matrix.Matrix) kernels.Linear {
	if w == nil {
		return nil
	}
	lin, err := l.opt.Backend.Load(w)
	switch {
	case errors.Is(err, matrix.ErrUnsupported):
		lin, err = l.loadHere(w)
	case err == nil && !l.Local():
		l.sent += w.Weights()
		if l.opt.Spare {
			s := spare{backend: l.opt.Backend, device: lin}
			s.cpu, err = l.loadHere(w)
			lin = s
		}
	}
	if err != nil {
		l.Fail("a matrix of %dx%d: %w", w.Rows, w.Cols, err)
		return nil
	}
	return lin
}

// loadHere makes w ready to multiply on the CPU, in the loader's memory.
func (l *Loader) loadHere(w *matrix.Matrix) (kernels.Linear, error) {
	if !l.Local() {
		own, err := kernels.Stack(l.memory, w)
		if err != nil {
			return nil, err
		}
		w = own
	}
	return l.cpu.Load(w)
}

// factorsOf returns what the weights of each matrix of a tensor are multiplied by, the numbers of the
// tensor beside it where the architecture or the type has such; nil: one.
func (l *Loader) factorsOf(t *gguf.Tensor) []float32 {
	if t == nil || !l.opt.Scales && t.Type != gguf.NVFP4 {
		return nil
	}
	if of, known := l.factors[t.Name]; known {
		return of
	}
	stem := strings.TrimSuffix(t.Name, "weight")
	if t.Type == gguf.NVFP4 { // what activations were scaled by elsewhere
		l.Ignore(stem + "input_scale")
	}
	of := l.OptionalVector(stem+"scale", partOf(t, 0).Matrices)
	l.factors[t.Name] = of
	return of
}

// factor returns that of the matrix at row lo of t.
func (l *Loader) factor(t *gguf.Tensor, lo int) float32 {
	if of := l.factorsOf(t); of != nil {
		return of[partOf(t, lo).Matrix]
	}
	return 1
}
