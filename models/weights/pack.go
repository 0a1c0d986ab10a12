package weights

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/dense"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// pack repacks a weight matrix for the kernels. What it returns owns its
// memory, so the file's bytes of t are not needed afterwards.
//
//   - Rows that are exactly scale × {-1, 0, 1}, whatever their storage type but
//     Q1_0, which takes less as it is, become a ternary packing with one scale a
//     row, or one for the matrix.
//   - Types with a packing of their own go there; those that another such type
//     holds exactly are recoded first (ternary ones whose scale changes within a
//     row, and with PackingStored all of them, become 2-bit groups).
//   - Q4_1, Q5_1, Q2_K and Q5_K are rounded to binary16, a relative error
//     below 2⁻¹¹.
//   - opt.Exact widens everything to float32.
//
// All weights are multiplied by factor, which goes into the scales of ternary
// matrices; others are widened to float32 when it is not 1.
func pack(t *gguf.Tensor, factor float32, opt Options) (*matrix.Matrix, error) {
	ternary, stored, err := ternaryPacking(opt.Packing)
	if err != nil {
		return nil, err
	}
	if opt.Exact {
		return packFloats(t, factor)
	}
	if !stored && (t.Type != gguf.Q1_0 || opt.Packing == PackingI1 || opt.Packing == PackingI2) {
		if m, err := packTernary(t, factor, ternary); m != nil || err != nil {
			return m, err
		}
	}
	if factor != 1 {
		return packFloats(t, factor)
	}
	if to, f := t.Recoding(); f != nil {
		t = recode(t, to, f)
	}
	rows, cols := t.Rows(), t.Cols()
	switch t.Type {
	case gguf.F16:
		return dense.PackF16(rows, cols, t.Data)
	case gguf.BF16:
		return dense.PackBF16(rows, cols, t.Data)
	case gguf.Q1_0:
		return grouped.PackQ1_0(rows, cols, t.Data)
	case gguf.Q2_0:
		return grouped.PackQ2_0(rows, cols, t.Data)
	case gguf.PQ2_0:
		return grouped.PackPQ2_0(rows, cols, t.Data)
	case gguf.Q8_0:
		return grouped.PackQ8_0(rows, cols, t.Data)
	case gguf.Q4_0:
		return grouped.PackQ4_0(rows, cols, t.Data)
	case gguf.Q4_K:
		return grouped.PackQ4_K(rows, cols, t.Data)
	case gguf.Q6_K:
		return grouped.PackQ6_K(rows, cols, t.Data)
	case gguf.MXFP4:
		if m, err := grouped.PackMXFP4(rows, cols, t.Data); !errors.Is(err, matrix.ErrUnsupported) {
			return m, err
		}
	case gguf.Q4_1, gguf.Q5_1, gguf.Q2_K, gguf.Q5_K:
		return packHalves(t)
	}
	return packFloats(t, 1)
}

// MostBytes is the size in memory that a stored matrix of so many rows and columns has
// at most, whatever its weights are.
func (l *Loader) MostBytes(t *gguf.Tensor, rows, cols int) int {
	if l.opt.Exact {
		return kernels.DataSize(rows, cols, matrix.F32)
	}
	return max(kernels.DataSize(rows, cols, storedPacking(t.Type)), kernels.DataSize(rows, cols, matrix.I2))
}

// storedPacking is what pack makes of weights of a type that are not ternary.
func storedPacking(t gguf.Type) matrix.Packing {
	switch t {
	case gguf.F16, gguf.Q4_1, gguf.Q5_1, gguf.Q2_K, gguf.Q5_K:
		return matrix.F16
	case gguf.BF16:
		return matrix.BF16
	case gguf.Q1_0:
		return matrix.Q1G128
	case gguf.Q2_0:
		return matrix.Q2G64
	case gguf.PQ2_0, gguf.PTQ1_0, gguf.TQ1_0, gguf.TQ2_0, gguf.I2_S:
		return matrix.Q2G128
	case gguf.Q8_0, gguf.Q5_0, gguf.IQ4_NL:
		return matrix.Q8
	case gguf.MXFP4: // with the scales that there are in practice
		return matrix.FP4
	case gguf.Q4_0, gguf.Q1_0_G32:
		return matrix.Q4
	case gguf.Q4_K:
		return matrix.Q4M
	case gguf.Q6_K, gguf.Q3_K:
		return matrix.Q6
	}
	return matrix.F32
}

// The run-time packings of ternary matrices, as Options.Packing names them.
const (
	PackingAuto = "auto" // I2
	PackingI1   = "i1"   // 1.6 bits a weight
	PackingI2   = "i2"   // 2 bits a weight
	// PackingStored is what the storage type has when its weights are not
	// ternary: F16 keeps float32 activations, ternary types become 2-bit groups
	// with an activation scale each 32 columns. More exact, slower.
	PackingStored = "stored"
)

// Packings lists the values of Options.Packing.
func Packings() []string { return []string{PackingAuto, PackingI1, PackingI2, PackingStored} }

// ternaryPacking reads Options.Packing.
func ternaryPacking(name string) (p matrix.Packing, stored bool, err error) {
	switch name {
	case "", PackingAuto, PackingI2:
		return matrix.I2, false, nil
	case PackingI1:
		return matrix.I1, false, nil
	case PackingStored:
		return 0, true, nil
	}
	return 0, false, fmt.Errorf("weights: packing %q is none of %s", name, strings.Join(Packings(), ", "))
}

// packFloats widens factor × t to float32.
func packFloats(t *gguf.Tensor, factor float32) (*matrix.Matrix, error) {
	w := make([]float32, t.Len())
	err := eachRow(t, func(r int, values []float32) error {
		vector.Scale(w[r*len(values):(r+1)*len(values)], values, factor)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return dense.PackF32(t.Rows(), t.Cols(), w)
}

// packHalves rounds t to binary16.
func packHalves(t *gguf.Tensor) (*matrix.Matrix, error) {
	raw := make([]byte, 2*t.Len())
	err := eachRow(t, func(r int, values []float32) error {
		return gguf.Quantize(gguf.F16, raw[2*r*len(values):][:2*len(values)], values)
	})
	if err != nil {
		return nil, err
	}
	return dense.PackF16(t.Rows(), t.Cols(), raw)
}

// eachRow calls do with the values of every row, in parallel, and returns one
// of its errors. values is reused.
func eachRow(t *gguf.Tensor, do func(r int, values []float32) error) error {
	var first atomic.Pointer[error]
	inParallel(t.Rows(), func(lo, hi int) {
		values := make([]float32, t.Cols())
		for r := lo; r < hi && first.Load() == nil; r++ {
			err := t.Dequantize(values, r*len(values))
			if err == nil {
				err = do(r, values)
			}
			if err != nil {
				first.CompareAndSwap(nil, &err)
			}
		}
	})
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}

// recode rewrites t block by block.
func recode(t *gguf.Tensor, to gguf.Type, f func(dst, src []byte)) *gguf.Tensor {
	from := t.Type.BlockBytes()
	size := t.Type.BlockLen() / to.BlockLen() * to.BlockBytes() // what a block becomes
	blocks := t.Len() / t.Type.BlockLen()
	out := &gguf.Tensor{Name: t.Name, Type: to, Dims: t.Dims, Data: make([]byte, blocks*size)}
	inParallel(blocks, func(lo, hi int) {
		for b := lo; b < hi; b++ {
			f(out.Data[b*size:(b+1)*size], t.Data[b*from:(b+1)*from])
		}
	})
	return out
}

// inParallel calls do on ranges that cover [0, n), on all cores.
func inParallel(n int, do func(lo, hi int)) {
	const atLeast = 16 // rows or blocks worth a goroutine
	parts := min(runtime.GOMAXPROCS(0), (n+atLeast-1)/atLeast)
	var wait sync.WaitGroup
	for i := range parts {
		wait.Go(func() { do(n*i/parts, n*(i+1)/parts) })
	}
	wait.Wait()
}
