package hexagon

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels/dense"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

// formats holds the formats of packings whose codes the device has. Their scales become int16,
// relative to the largest of their row.
var formats = map[matrix.Packing]layout.Format{
	matrix.I1:     layout.Ternary,
	matrix.I2:     layout.Ternary,
	matrix.Q1G128: {Bits: 1, A: 2, B: 1, Group: 128},
	matrix.Q2G64:  {Bits: 2, A: 1, B: 1, Group: 64},
	matrix.Q2G128: {Bits: 2, A: 1, B: 1, Group: 128},
	matrix.Q4:     layout.Q4_0,
	matrix.Q8:     layout.Q8_0,
	matrix.FP4:    layout.MXFP4,
	matrix.Q4M:    {Bits: 4, A: 1, Group: 32, Offsets: true},
	matrix.Q41:    {Bits: 4, A: 1, Group: 32, Offsets: true},
}

// formatOf returns the format of w; false: the device has none.
func formatOf(w *matrix.Matrix) (layout.Format, bool) {
	f, ok := formats[w.Packing]
	switch w.Packing {
	case matrix.NL4, matrix.NL4K, matrix.NL4S: // with a scale for each 32 columns
		f, ok = layout.Format{Bits: 4, Group: groupCols, Values: make([]float32, len(w.Levels.Of))}, true
		for i, v := range w.Levels.Of {
			f.Values[i] = float32(v)
		}
	}
	if w.Offsets != nil { // of whole groups, beside scales without offsets
		each := w.Cols / w.Offsets.Cols
		ok = ok && f.Group > 0 && !f.Offsets && each%f.Group == 0
		f.Offsets = true
	}
	return f, ok && w.Cols <= layout.MaxDim
}

// convert gives w the device's layout. It reports ErrUnsupported for weights that
// the device does not hold exactly.
func convert(w *matrix.Matrix) (*layout.Weights, error) {
	f, ok := formatOf(w)
	if !ok {
		return nil, fmt.Errorf("%w: %v of %dx%d", matrix.ErrUnsupported, w.Packing, w.Rows, w.Cols)
	}
	d, err := layout.New(w.Rows, w.Cols, f)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", matrix.ErrUnsupported, err)
	}
	var failed atomic.Pointer[error]
	matrix.Parallel((w.Rows+rowsAtOnce-1)/rowsAtOnce, func(i int) {
		r := newUnpacker(w, f)
		for m := i * rowsAtOnce; m < min(w.Rows, (i+1)*rowsAtOnce); m++ {
			if err := r.row(d, m); err != nil {
				failed.Store(&err)
			}
		}
	})
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return d, nil
}

// halves returns the weights of a matrix in tiles of fp16, and beside them the sizes and R: powers of two, so
// that bfloat16 of other exponents than fp16's are exact down to 2⁻³² of the largest of their row. It takes
// F16, BF16, and F32 whose numbers are all of one of these, or of fp16 with such a power. With rounded it takes
// any packing that is not ternary: each weight is within 2⁻¹¹ of itself, or 2⁻³⁹ of the largest. It reports
// ErrUnsupported for other F32, for infinities and what is no number.
func halves(w *matrix.Matrix, rounded bool) (*layout.Weights, *layout.Tiles, error) {
	if w.Cols > layout.MaxDim || w.Packing.Ternary() {
		return nil, nil, fmt.Errorf("%w: %v of %dx%d", matrix.ErrUnsupported, w.Packing, w.Rows, w.Cols)
	}
	t := layout.NewTiles(w.Rows, w.Cols)
	d := &layout.Weights{Format: layout.Format{Bits: 16, Group: t.K}, Rows: w.Rows, Cols: w.Cols, M: t.M, K: t.K, R: make([]float32, t.M)}
	as := w.Packing
	if as == matrix.F32 && !rounded {
		as = narrowest(w)
	}
	var bad, inexact atomic.Bool
	most := make([]float32, (w.Rows+rowsAtOnce-1)/rowsAtOnce)
	matrix.Parallel(len(most), func(i int) {
		row := make([]float32, w.Cols)
		for m := i * rowsAtOnce; m < min(w.Rows, (i+1)*rowsAtOnce); m++ {
			rowOf(row, w, m)
			d.R[m] = 1
			if as != matrix.F16 {
				d.R[m] = tileScale(row) * 0x1p-15
			}
			for k, f := range row {
				if f-f != 0 {
					bad.Store(true)
				}
				if row[k] = f / d.R[m]; as == matrix.F32 && !rounded && layout.F32(layout.F16(row[k])) != row[k] {
					inexact.Store(true)
				}
			}
			t.SetRow(m, row)
			most[i] = max(most[i], largest(row))
		}
	})
	t.Most = layout.F32(layout.F16(largest(most)))
	switch {
	case bad.Load():
		return nil, nil, fmt.Errorf("%w: %v of %dx%d with infinities or what is no number", matrix.ErrUnsupported, w.Packing, w.Rows, w.Cols)
	case inexact.Load():
		return nil, nil, fmt.Errorf("%w: F32 of %dx%d with more digits than fp16 has", matrix.ErrUnsupported, w.Rows, w.Cols)
	}
	return d, t, nil
}

// narrowest returns F16 or BF16 if all weights of an F32 matrix are of it, else F32.
func narrowest(w *matrix.Matrix) matrix.Packing {
	var f16, bf16 atomic.Bool
	matrix.Parallel((w.Rows+rowsAtOnce-1)/rowsAtOnce, func(i int) {
		row := make([]float32, w.Cols)
		for m := i * rowsAtOnce; m < min(w.Rows, (i+1)*rowsAtOnce) && !(f16.Load() && bf16.Load()); m++ {
			rowOf(row, w, m)
			for _, f := range row {
				if layout.F32(layout.F16(f)) != f {
					f16.Store(true)
				}
				if math.Float32bits(f)&0xffff != 0 {
					bf16.Store(true)
				}
			}
		}
	})
	switch { // what is stored says that some are not
	case !f16.Load():
		return matrix.F16
	case !bf16.Load():
		return matrix.BF16
	}
	return matrix.F32
}

// rowsAtOnce is the number of rows that is worth a call.
const rowsAtOnce = 64

// unpacker takes rows of a packed matrix apart.
type unpacker struct {
	w             *matrix.Matrix
	f             layout.Format
	signed        []int8
	codes         []uint8
	scales, least []float32  // of 32 columns each
	codeOf        [256]uint8 // of each value, as a byte
	offsets       []float32  // of the matrix's groups of them
}

func newUnpacker(w *matrix.Matrix, f layout.Format) *unpacker {
	n := w.Cols / groupCols
	u := &unpacker{w: w, f: f, signed: make([]int8, w.Cols), codes: make([]uint8, w.Cols), scales: make([]float32, n), least: make([]float32, n)}
	for i := len(f.Values) - 1; i >= 0; i-- {
		u.codeOf[uint8(int8(f.Values[i]))] = uint8(i)
	}
	if w.Offsets != nil {
		u.offsets = make([]float32, w.Offsets.Cols)
	}
	return u
}

// groupCols is the number of columns for which grouped.Codes has a scale.
const groupCols = 32

// row puts row m into d.
func (u *unpacker) row(d *layout.Weights, m int) error {
	f := &u.f
	if u.w.Packing.Ternary() {
		ternary.Trits(u.signed, u.w, m)
		for k, t := range u.signed {
			u.codes[k] = uint8(t + 1)
		}
		return d.SetRow(m, u.codes, []float32{u.w.Scale[m%len(u.w.Scale)]}, nil)
	}
	grouped.Codes(u.signed, u.scales, u.least, u.w, m)
	for k, q := range u.signed {
		if f.Values != nil {
			u.codes[k] = u.codeOf[uint8(q)]
		} else {
			u.codes[k] = uint8((int(q) + f.B) / f.A)
		}
	}
	step := f.Group / groupCols
	scales, offsets := u.scales[:0:len(u.scales)], []float32(nil)
	if step > 1 {
		scales = make([]float32, 0, len(u.scales)/step+1)
	}
	if u.w.Offsets != nil {
		dense.Row(u.offsets, u.w.Offsets, m)
	}
	for g := 0; g < u.w.Cols/groupCols; g += step {
		scales = append(scales, u.scales[g])
		switch {
		case u.w.Offsets != nil:
			offsets = append(offsets, u.offsets[g*groupCols/(u.w.Cols/u.w.Offsets.Cols)])
		case f.Offsets:
			offsets = append(offsets, -u.least[g])
		}
	}
	return d.SetRow(m, u.codes, scales, offsets)
}
