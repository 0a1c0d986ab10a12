package weights

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/dense"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// Pack repacks a weight matrix for the kernels. What it returns owns its
// memory, so the file's bytes of t are not needed afterwards.
//
//   - Rows that are exactly scale × {-1, 0, 1}, whatever their storage type but
//     Q1_0, which takes less as it is, become a ternary packing with one scale a
//     row, or one for the matrix.
//   - Types with a packing of their own go there; those that another such type
//     holds exactly are recoded first (ternary ones whose scale changes within a
//     row, and with PackingStored all of them, become 2-bit groups).
//   - Q5_1, Q2_K, Q5_K, Q2_0C and Q4_Z types become codes about their middle, and offsets of float32.
//   - form.Exact widens everything to float32.
//
// All weights are multiplied by factor, which goes into the scales of ternary
// matrices and of NVFP4; others are widened to float32 when it is not 1.
func Pack(t *gguf.Tensor, factor float32, form Form) (*matrix.Matrix, error) {
	ternary, stored, err := ternaryPacking(form.Packing)
	if err != nil {
		return nil, err
	}
	if form.Exact {
		return packFloats(t, factor)
	}
	if !stored && (t.Type != gguf.Q1_0 || form.Packing == PackingI1 || form.Packing == PackingI2) {
		if m, err := packTernary(t, factor, ternary); m != nil || err != nil {
			return m, err
		}
	}
	switch {
	case factor == 1:
	case t.Type == gguf.NVFP4:
		return packNVFP4(t, factor)
	default:
		return packFloats(t, factor)
	}
	if pack := storages[t.Type].pack; pack != nil {
		return pack(t)
	}
	if to, f := t.Recoding(); f != nil {
		t = recode(t, to, f)
	}
	if pack := storages[t.Type].pack; pack != nil {
		return pack(t)
	}
	return packFloats(t, 1)
}

// storage says what becomes of weights of a type that are not ternary.
type storage struct {
	packing matrix.Packing
	pack    func(t *gguf.Tensor) (*matrix.Matrix, error) // nil: there is none for what was not recoded
	offset  int                                          // columns that have an offset each; 0: none have
}

// storages are of all types but those that are widened to float32.
var storages = map[gguf.Type]storage{
	gguf.F16:    {packing: matrix.F16, pack: asStored(dense.PackF16)},
	gguf.BF16:   {packing: matrix.BF16, pack: asStored(dense.PackBF16)},
	gguf.Q1_0:   {packing: matrix.Q1G128, pack: asStored(grouped.PackQ1_0)},
	gguf.Q2_0:   {packing: matrix.Q2G64, pack: asStored(grouped.PackQ2_0)},
	gguf.PQ2_0:  {packing: matrix.Q2G128, pack: asStored(grouped.PackPQ2_0)},
	gguf.Q8_0:   {packing: matrix.Q8, pack: asStored(grouped.PackQ8_0)},
	gguf.Q4_0:   {packing: matrix.Q4, pack: asStored(grouped.PackQ4_0)},
	gguf.Q4_K:   {packing: matrix.Q4M, pack: asStored(grouped.PackQ4_K)},
	gguf.Q6_K:   {packing: matrix.Q6, pack: asStored(grouped.PackQ6_K)},
	gguf.MXFP4:  {packing: matrix.FP4, pack: orFloats(grouped.PackMXFP4)}, // with the scales that there are in practice
	gguf.Q5_0:   {packing: matrix.Q8, pack: asStored(grouped.PackQ5_0)},
	gguf.Q4_1:   {packing: matrix.Q41, pack: asStored(grouped.PackQ4_1)},
	gguf.Q5_1:   {matrix.Q8, asStored(grouped.PackQ5_1), 32},
	gguf.Q4_Z32: {matrix.Q4, zeros(32), 32}, gguf.Q4_Z64: {matrix.Q4, zeros(64), 64}, gguf.Q4_Z128: {matrix.Q4, zeros(128), 128},
	gguf.Q2_K:   {matrix.NL3K, asStored(grouped.PackQ2_K), 16},
	gguf.Q2_0C:  {matrix.Q2G128, orFloats(grouped.PackQ2_0C), 512},
	gguf.Q5_K:   {matrix.Q6, asStored(grouped.PackQ5_K), 32},
	gguf.NVFP4:  {packing: matrix.NVFP4, pack: func(t *gguf.Tensor) (*matrix.Matrix, error) { return packNVFP4(t, 1) }},
	gguf.IQ4_NL: {packing: matrix.NL4, pack: asStored(grouped.PackIQ4_NL)},
	gguf.IQ4_XS: {packing: matrix.NL4K, pack: asStored(grouped.PackIQ4_XS)},
	gguf.IQ3_S:  {packing: matrix.NL4S, pack: superblocks(grouped.LevelsIQ3S)}, gguf.IQ3_XXS: {packing: matrix.NL4S, pack: superblocks(grouped.LevelsIQ3XXS)},
	gguf.Q3_K:  {packing: matrix.NL3K, pack: superblocks(grouped.LevelsQ3K)},
	gguf.IQ2_S: {packing: matrix.NL3K, pack: superblocks(grouped.LevelsIQ2)}, gguf.IQ2_XS: {packing: matrix.NL3K, pack: superblocks(grouped.LevelsIQ2)}, gguf.IQ2_XXS: {packing: matrix.NL3K, pack: superblocks(grouped.LevelsIQ2)},
	gguf.IQ1_M: {packing: matrix.NL3K, pack: superblocks(grouped.LevelsIQ1)}, gguf.IQ1_S: {packing: matrix.NL3K, pack: superblocks(grouped.LevelsIQ1)},

	// As gguf.Tensor.Recoding has them.
	gguf.PTQ1_0: {packing: matrix.Q2G128}, gguf.STQ1_0: {packing: matrix.Q2G128}, gguf.TQ1_0: {packing: matrix.Q2G128}, gguf.TQ2_0: {packing: matrix.Q2G128}, gguf.I2_S: {packing: matrix.Q2G128},
	gguf.Q1_0_G32: {packing: matrix.Q4},
}

// asStored has pack read the bytes of a tensor as they are.
func asStored(pack func(rows, cols int, data []byte) (*matrix.Matrix, error)) func(*gguf.Tensor) (*matrix.Matrix, error) {
	return func(t *gguf.Tensor) (*matrix.Matrix, error) { return pack(t.Rows(), t.Cols(), t.Data) }
}

// zeros has codes about a code of zero each group columns packed.
func zeros(group int) func(*gguf.Tensor) (*matrix.Matrix, error) {
	return asStored(func(rows, cols int, data []byte) (*matrix.Matrix, error) {
		return grouped.PackQ4Z(rows, cols, group, data)
	})
}

// superblocks has blocks of a type of superblocks packed as codes of levels.
func superblocks(levels *matrix.Levels) func(*gguf.Tensor) (*matrix.Matrix, error) {
	return func(t *gguf.Tensor) (*matrix.Matrix, error) {
		read, size, each := t.Type.Superblocks(), t.Type.BlockBytes(), t.Cols()/t.Type.BlockLen()
		return grouped.PackSuperblocks(levels, t.Rows(), t.Cols(), func(s *grouped.Superblock, r, u int) {
			read((*gguf.Superblock)(s), t.Data[(r*each+u)*size:][:size])
		})
	}
}

// MostBytes returns the size in memory that a stored matrix of rows × cols has at
// most, whatever its weights are.
func MostBytes(t gguf.Type, rows, cols int) int {
	packing, offsets := matrix.F32, 0
	if s, ok := storages[t]; ok {
		packing = s.packing
		if s.offset > 0 {
			offsets = kernels.DataSize(rows, cols/s.offset, matrix.F32)
		}
	}
	return max(kernels.DataSize(rows, cols, packing)+offsets, kernels.DataSize(rows, cols, matrix.I2))
}

// Form says what stored matrices are packed as.
type Form struct {
	Packing string // of ternary matrices: one of Packings; "": PackingAuto
	Exact   bool   // widen all weights to float32
}

// The run-time packings of ternary matrices, as Form.Packing names them.
const (
	PackingAuto = "auto" // I2
	PackingI1   = "i1"   // 1.6 bits a weight
	PackingI2   = "i2"   // 2 bits a weight
	// PackingStored keeps the storage type's precision if its weights are not ternary. F16 keeps float32
	// activations, ternary types become 2-bit groups with an activation scale each 32 columns. More exact, slower.
	PackingStored = "stored"
)

// Packings lists the values of Form.Packing.
func Packings() []string { return []string{PackingAuto, PackingI1, PackingI2, PackingStored} }

// ternaryPacking reads Form.Packing.
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

// packNVFP4 packs factor × t.
func packNVFP4(t *gguf.Tensor, factor float32) (*matrix.Matrix, error) {
	return grouped.PackNVFP4(t.Rows(), t.Cols(), t.Data, factor)
}

// orFloats has tensors packed, or widened where their scales are beyond what that packing has.
func orFloats(pack func(rows, cols int, data []byte) (*matrix.Matrix, error)) func(*gguf.Tensor) (*matrix.Matrix, error) {
	return func(t *gguf.Tensor) (*matrix.Matrix, error) {
		m, err := pack(t.Rows(), t.Cols(), t.Data)
		if errors.Is(err, matrix.ErrUnsupported) {
			return packFloats(t, 1)
		}
		return m, err
	}
}

// eachRow calls do with the values of every row, in parallel, and returns one
// of its errors. values is reused.
func eachRow(t *gguf.Tensor, do func(r int, values []float32) error) error {
	var first atomic.Pointer[error]
	parallel.Ranges(t.Rows(), func(lo, hi int) {
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
	parallel.Ranges(blocks, func(lo, hi int) {
		for b := lo; b < hi; b++ {
			f(out.Data[b*size:(b+1)*size], t.Data[b*from:(b+1)*from])
		}
	})
	return out
}
