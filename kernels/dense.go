package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
)

// denseLinear multiplies a row-major float matrix, one part a row.
type denseLinear struct {
	cpu *CPU
	w   *Matrix
}

func newDense(c *CPU, w *Matrix) (Linear, error) {
	if want := w.Rows * w.Cols * denseBytes(w.Packing); len(w.Data) != want {
		return nil, fmt.Errorf("%w: %d bytes of %v for %d x %d, want %d", ErrShape, len(w.Data), w.Packing, w.Rows, w.Cols, want)
	}
	return &denseLinear{c, w}, nil
}

func denseBytes(p Packing) int {
	if p == F32 {
		return 4
	}
	return 2
}

// Mul sets y[n][Rows] to x · Wᵀ.
func (l *denseLinear) Mul(y []float32, x *Acts) {
	for n := range x.n {
		a := x.Row(n)
		for r := range l.w.Rows {
			sum := float32(0)
			for k, v := range a {
				sum += v * l.at(r*l.w.Cols+k)
			}
			y[n*l.w.Rows+r] = sum
		}
	}
}

func (l *denseLinear) at(i int) float32 {
	switch l.w.Packing {
	case F32:
		return math.Float32frombits(binary.LittleEndian.Uint32(l.w.Data[4*i:]))
	case BF16:
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(l.w.Data[2*i:])) << 16)
	}
	return halfToFloat(binary.LittleEndian.Uint16(l.w.Data[2*i:]))
}

// halfToFloat widens an IEEE half.
func halfToFloat(h uint16) float32 {
	mant, exp := uint32(h&0x3ff), uint32(h>>10&0x1f)
	f := float32(mant) * 0x1p-24
	if exp == 0x1f {
		f = math.Float32frombits(0x7f800000 | mant<<13)
	} else if exp > 0 {
		f = math.Float32frombits((exp+112)<<23 | mant<<13)
	}
	if h>>15 == 1 {
		return -f
	}
	return f
}
