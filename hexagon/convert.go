package hexagon

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

// affine are the formats of packings whose codes the device looks up. Their scales
// become int16, relative to the largest of their row.
var affine = map[matrix.Packing]layout.Format{
	matrix.I1:     layout.Ternary,
	matrix.I2:     layout.Ternary,
	matrix.Q1G128: {Bits: 1, A: 2, B: 1, Group: 128},
	matrix.Q2G64:  {Bits: 2, A: 1, B: 1, Group: 64},
	matrix.Q2G128: {Bits: 2, A: 1, B: 1, Group: 128},
	matrix.Q4:     layout.Q4_0,
	matrix.Q4M:    {Bits: 4, A: 1, Group: 32, Offsets: true},
}

// convert gives w the device's layout. It reports ErrUnsupported for weights that
// the device does not hold exactly.
func convert(w *matrix.Matrix) (*layout.Weights, error) {
	f, ok := affine[w.Packing]
	if !ok && w.Levels == grouped.LevelsIQ4 {
		f, ok = layout.IQ4_NL, true
	}
	if !ok || w.Offsets != nil || w.Cols > layout.MaxDim {
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

// rowsAtOnce is how many rows are worth a call.
const rowsAtOnce = 64

// unpacker takes rows of a packed matrix apart.
type unpacker struct {
	w             *matrix.Matrix
	f             layout.Format
	signed        []int8
	codes         []uint8
	scales, least []float32 // of 32 columns each
}

func newUnpacker(w *matrix.Matrix, f layout.Format) *unpacker {
	n := w.Cols / groupCols
	return &unpacker{w: w, f: f, signed: make([]int8, w.Cols), codes: make([]uint8, w.Cols), scales: make([]float32, n), least: make([]float32, n)}
}

// groupCols is how many columns grouped.Codes has a scale for.
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
			u.codes[k] = uint8(iq4NL[uint8(q)])
		} else {
			u.codes[k] = uint8((int(q) + f.B) / f.A)
		}
	}
	step := f.Group / groupCols
	scales, offsets := u.scales[:0:len(u.scales)], []float32(nil)
	if step > 1 {
		scales = make([]float32, 0, len(u.scales)/step+1)
	}
	for g := 0; g < u.w.Cols/groupCols; g += step {
		scales = append(scales, u.scales[g])
		if f.Offsets {
			offsets = append(offsets, -u.least[g])
		}
	}
	return d.SetRow(m, u.codes, scales, offsets)
}

// iq4NL is the code of each of IQ4_NL's values, as a byte; -1: it is none.
var iq4NL = func() (t [256]int8) {
	for i := range t {
		t[i] = int8(slices.Index(layout.IQ4_NL.Values, float32(int8(i))))
	}
	return t
}()
