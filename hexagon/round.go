package hexagon

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels/dense"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
)

// Rounding is a way to store weights that the device does not hold exactly: weights with
// scales of 16 columns, and of float32. Weights of four bits are codes in super-groups
// (Test-Time Scaling on NPUs, §5.1): 32 that follow one another in a tile, two rows by
// 16 columns, share a scale. They are multiplied by tiles alone. Weights of eight bits are
// stored as a file's Q8_0.
type Rounding string

// The roundings.
const (
	RoundNone   Rounding = "none" // the CPU has them
	RoundF16    Rounding = "f16"  // to fp16, with a power of two a row, in tiles: see halves
	RoundQ8_0   Rounding = "q8_0"
	RoundQ4_0   Rounding = "q4_0"
	RoundIQ4_NL Rounding = "iq4_nl"
	RoundNF4    Rounding = "nf4"
	RoundFP4    Rounding = "fp4"
)

// Roundings lists all roundings.
func Roundings() []string {
	return []string{string(RoundNone), string(RoundF16), string(RoundQ8_0), string(RoundQ4_0), string(RoundIQ4_NL), string(RoundNF4), string(RoundFP4)}
}

// values returns the values of four-bit codes, nil for other roundings.
func (r Rounding) values() []float32 {
	switch r {
	case RoundQ4_0:
		return layout.Q4Values[:]
	case RoundIQ4_NL:
		return layout.IQ4_NL.Values
	case RoundNF4:
		return layout.NF4.Values
	case RoundFP4:
		return layout.FP4.Values
	}
	return nil
}

// mostRounded bounds the magnitude of weights that round makes: those that it rounds
// are at most 1.
const mostRounded = 2

// round rounds w to super-groups. Of the weights beside them only the sizes and R, one
// power of two, have a meaning.
func round(w *matrix.Matrix, to Rounding) (*layout.Weights, *layout.SuperGroups, error) {
	if w.Cols > layout.MaxDim || w.Packing.Ternary() {
		return nil, nil, fmt.Errorf("%w: %v of %dx%d", matrix.ErrUnsupported, w.Packing, w.Rows, w.Cols)
	}
	most := make([]float32, w.Rows)
	matrix.Parallel(w.Rows, func(m int) {
		row := make([]float32, w.Cols)
		rowOf(row, w, m)
		most[m] = largest(row)
	})
	unit := tileScale(most)
	d := &layout.Weights{Format: layout.Format{Bits: 4}, Rows: w.Rows, Cols: w.Cols, M: roundUp(w.Rows, layout.Strip), K: roundUp(w.Cols, layout.TableCols)}
	d.Group, d.R = d.K, make([]float32, d.M)
	for m := range d.R[:w.Rows] {
		d.R[m] = unit
	}
	g := layout.QuantizeTiles(layout.Rows{Rows: d.M, Cols: d.K, Row: func(m int, dst []float32) {
		clear(dst)
		if m >= w.Rows {
			return
		}
		rowOf(dst[:w.Cols], w, m)
		for k := range dst[:w.Cols] {
			if dst[k] /= unit; math.IsNaN(float64(dst[k])) {
				dst[k] = 0
			}
		}
	}}, to.values())
	return d, g, nil
}

// roundBytes rounds w to Q8_0.
func roundBytes(w *matrix.Matrix) (*layout.Weights, error) {
	if w.Cols > layout.MaxDim || w.Packing.Ternary() {
		return nil, fmt.Errorf("%w: %v of %dx%d", matrix.ErrUnsupported, w.Packing, w.Rows, w.Cols)
	}
	d, err := layout.New(w.Rows, w.Cols, layout.Q8_0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", matrix.ErrUnsupported, err)
	}
	var failed atomic.Pointer[error]
	matrix.Parallel((w.Rows+rowsAtOnce-1)/rowsAtOnce, func(i int) {
		row, codes, scales := make([]float32, w.Cols), make([]uint8, w.Cols), make([]float32, (w.Cols+groupCols-1)/groupCols)
		for m := i * rowsAtOnce; m < min(w.Rows, (i+1)*rowsAtOnce); m++ {
			rowOf(row, w, m)
			for g := range scales {
				of := row[g*groupCols : min(w.Cols, (g+1)*groupCols)]
				scales[g] = largest(of) / (layout.ByteZero - 1)
				for k, f := range of {
					codes[g*groupCols+k] = layout.ByteZero
					if q := math.RoundToEven(float64(f / scales[g])); math.Abs(q) < layout.ByteZero { // what is no number is zero
						codes[g*groupCols+k] = uint8(layout.ByteZero + q)
					}
				}
			}
			if err := d.SetRow(m, codes, scales, nil); err != nil {
				failed.Store(&err)
			}
		}
	})
	if err := failed.Load(); err != nil {
		return nil, fmt.Errorf("%w: %w", matrix.ErrUnsupported, *err)
	}
	return d, nil
}

// rowOf sets dst[Cols] to row m of a matrix that is not ternary.
func rowOf(dst []float32, w *matrix.Matrix, m int) {
	if w.Packing.Kind() == meter.Grouped {
		grouped.Row(dst, w, m)
	} else {
		dense.Row(dst, w, m)
	}
}
