package load

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/weights"
)

// reader reads tensors piece by piece and packs them.
type reader struct {
	progress  func(done, total int64)
	interrupt func() error

	raw         []byte          // what pieces are read into
	zero        map[string]bool // tensors read so far: whether they hold zeros alone
	read, total int64           // bytes of tensors so far, and of all
}

func newReader(file *gguf.File, opt *Options) reader {
	r := reader{progress: opt.Progress, interrupt: opt.Interrupt, zero: map[string]bool{}}
	for i := range file.Tensors {
		r.total += int64(file.Tensors[i].Bytes())
	}
	return r
}

// Read returns how many bytes of tensors have been read.
func (r *reader) Read() int64 { return r.read }

// Zeros names the tensors that hold zeros alone.
func (r *reader) Zeros() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.zero)) {
		if r.zero[name] {
			names = append(names, name)
		}
	}
	return names
}

// interrupted says why the loading should end; nil: it should not.
func (r *reader) interrupted() error {
	if r.interrupt == nil {
		return nil
	}
	return r.interrupt()
}

// advance tells that bytes more of tensors have been read.
func (r *reader) advance(bytes int) {
	r.read += int64(bytes)
	if r.progress != nil {
		r.progress(min(r.read, r.total), r.total)
	}
}

// pieceBytes is the approximate size of the pieces in which a matrix is read and packed. A large vocabulary then needs
// no second copy of itself, and a piece is still cached when it is packed.
var pieceBytes = 2 << 20 * runtime.GOMAXPROCS(0)

// build packs matrices one after the other in arena, piece by piece. It reports ErrUnsupported where they are
// not of one packing. One alone whose pieces are not, for some are ternary or of other scales, is packed as it
// is stored, or else widened.
func (r *reader) build(arena *cpu.Arena, form weights.Form, stored ...*Stored) (*matrix.Matrix, error) {
	rows := 0
	for _, s := range stored {
		rows += s.hi - s.lo
	}
	before, b := arena.Mark(), kernels.NewBuilder(arena, rows)
	for _, s := range stored {
		err := r.add(b, s, form)
		if len(stored) == 1 && errors.Is(err, matrix.ErrUnsupported) && !form.Exact {
			arena.Reset(before)
			return r.build(arena, weights.Form{Packing: weights.PackingStored, Exact: form.Packing == weights.PackingStored}, s)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", s.t.Name, err)
		}
	}
	return b.Matrix()
}

// stack builds one matrix of all. It reports ErrUnsupported if they have different packings, or end within a unit of
// one. Their first rows mostly tell so before there is memory for all.
func (r *reader) stack(arena *cpu.Arena, form weights.Form, stored []*Stored) (*matrix.Matrix, error) {
	firsts := make([]*matrix.Matrix, len(stored))
	defer matrix.Recycle(firsts...)
	for i := 0; i < len(stored) && len(stored) > 1; i++ {
		first, err := stored[i].t.Load(stored[i].lo, stored[i].lo+1, nil)
		if err == nil {
			firsts[i], err = weights.Pack(first, stored[i].factor, form)
		}
		if err != nil {
			return nil, err
		}
		if rows := stored[i].hi - stored[i].lo; !kernels.Alike(firsts[0], firsts[i]) || i+1 < len(stored) && rows%kernels.UnitRows(firsts[i].Packing) != 0 {
			return nil, matrix.ErrUnsupported
		}
	}
	return r.build(arena, form, stored...)
}

// add packs pieces beneath the rows of b.
func (r *reader) add(b *kernels.Builder, s *Stored, form weights.Form) error {
	piece := max(1, pieceBytes/max(1, s.t.Bytes()/s.t.Rows())/kernels.PieceRows) * kernels.PieceRows
	for lo := s.lo; lo < s.hi; lo += piece {
		w, err := r.pack(s.t, lo, min(s.hi, lo+piece), s.factor, form)
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

// pack packs rows [lo, hi) of t in the heap.
func (r *reader) pack(t *gguf.Tensor, lo, hi int, factor float32, form weights.Form) (*matrix.Matrix, error) {
	if err := r.interrupted(); err != nil {
		return nil, err
	}
	part, err := t.Load(lo, hi, r.raw)
	if err != nil {
		return nil, err
	}
	if t.Data == nil {
		r.raw = part.Data
	}
	r.advance(len(part.Data))
	if err := finite(part); err != nil {
		return nil, err
	}
	if zero, seen := r.zero[t.Name]; !seen || zero {
		if r.zero[t.Name], err = holdsZeros(part); err != nil {
			return nil, err
		}
	}
	return weights.Pack(part, factor, form)
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
