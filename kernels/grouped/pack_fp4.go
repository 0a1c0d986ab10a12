package grouped

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// e2m1 holds what the codes of FP4 stand for: twice the numbers of two bits of exponent
// and one of mantissa, so that they are integers.
var e2m1 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// PackMXFP4 packs MXFP4: blocks of 32 columns in 17 bytes,
//
//	e u8 · qs[16], column k in the low half of qs[k], k+16 in the high
//
// where a weight is e2m1[q]·2^(e-128). It reports ErrUnsupported for a scale that
// binary16 does not hold, of a block that is not zero.
func PackMXFP4(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size = 17
	if err := matrix.Check("MXFP4", rows, cols, acts.GroupCols, size, len(raw)); err != nil {
		return nil, err
	}
	for at := 0; at < len(raw); at += size {
		if _, ok := halfScale(raw[at:][:size]); !ok {
			return nil, fmt.Errorf("%w: a block of MXFP4 has scale 2^%d", matrix.ErrUnsupported, int(raw[at])-128)
		}
	}
	return newMatrix(matrix.FP4, rows, cols, func(w *row, r, g int) {
		b := (*[size]byte)(raw[(r*(cols/acts.GroupCols)+g)*size:])
		scale, _ := halfScale(b[:])
		binary.LittleEndian.PutUint16(w.half(g, 0), scale)
		low, high := binary.LittleEndian.Uint64(b[1:]), binary.LittleEndian.Uint64(b[9:])
		w.put4(g, &words{low, high, low >> 4, high >> 4})
	}), nil
}

// halfScale returns the scale of a block in binary16. A block of zeros may have any.
func halfScale(block []byte) (scale uint16, ok bool) {
	if d := halfOfExponent[block[0]]; d != 0 {
		return d, true
	}
	for _, q := range block[1:] {
		if q&0x77 != 0 {
			return 0, false
		}
	}
	return 0, true
}

// halfOfExponent is 2^(e-128) in binary16, or 0 where that does not hold it.
var halfOfExponent = func() (d [256]uint16) {
	const least, most = 128 - 24, 128 + 15
	for e := least; e <= most; e++ {
		d[e] = vector.ToF16(float32(math.Ldexp(1, e-128)))
	}
	return d
}()
