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
	return newMatrix(matrix.FP4, rows, cols, func(r int, w row) {
		for g := range cols / acts.GroupCols {
			b := raw[(r*(cols/acts.GroupCols)+g)*size:][:size]
			var d [2]byte
			scale, _ := halfScale(b)
			binary.LittleEndian.PutUint16(d[:], scale)
			w.putHalf(g, 0, d[:])
			var codes words
			for i := range 4 {
				v := binary.LittleEndian.Uint32(b[1+4*i:])
				codes[i], codes[i+4] = v, v>>4
			}
			w.put4(g, &codes)
		}
	}), nil
}

// halfScale returns the scale of a block in binary16. A block of zeros may have any.
func halfScale(block []byte) (scale uint16, ok bool) {
	const least, most = 128 - 24, 128 + 15
	if e := block[0]; e >= least && e <= most {
		return vector.ToF16(float32(math.Ldexp(1, int(e)-128))), true
	}
	for _, q := range block[1:] {
		if q&0x77 != 0 {
			return 0, false
		}
	}
	return 0, true
}
