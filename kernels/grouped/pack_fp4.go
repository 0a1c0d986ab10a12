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
		put4x4(w.planes(g), b[1:])
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

// PackNVFP4 packs NVFP4 times factor: blocks of 64 columns in 36 bytes,
//
//	d e4m3[4] · qs[32], byte 8s+i of which has column 16s+i in its low half, 16s+i+8 in the high
//
// where a weight is factor·e2m1[q]·d/2. The highest bit of d counts for nothing, and 0x7f is 0.
func PackNVFP4(rows, cols int, raw []byte, factor float32) (*matrix.Matrix, error) {
	const size, blockCols = 36, 64
	if err := matrix.Check("NVFP4", rows, cols, blockCols, size, len(raw)); err != nil {
		return nil, err
	}
	levels := &levelsFP4
	if factor != 1 {
		levels = &matrix.Levels{Of: e2m1, Scale: levels.Scale * factor}
	}
	return newLevelled(matrix.NVFP4, levels, rows, cols, func(w *row, r, g int) {
		b := (*[size]byte)(raw[(r*(cols/blockCols)+g/2)*size:])
		for h := range 2 {
			s := g%2*2 + h
			d := b[s] & 0x7f
			if d == 0x7f {
				d = 0
			}
			*w.small(g, 0, h) = d
			putWords(w.word(g, 2*h), binary.LittleEndian.Uint64(b[4+8*s:]))
		}
	}), nil
}

// levelsFP4 makes up for e2m1's being doubled, and for scales that are read as binary16 numbers.
var levelsFP4 = matrix.Levels{Of: e2m1, Scale: 0x1p7}

// scalesNVFP4 gives e4m3 as multiples of the least of them.
func scalesNVFP4(w row, g int) scales {
	const least = 0x1p-17 // as binary16 numbers 2⁻⁸ as large
	s := scales{d: w.levels.Scale * least}
	for h := range s.sc {
		s.sc[h] = int32(vector.FromF16(uint16(*w.small(g, 0, h))<<7) / least)
	}
	return s
}
