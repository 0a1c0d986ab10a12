package gguf

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// The quantisers follow quantize_row_*_ref in ggml-quants.c: round to nearest
// against the block's largest magnitude, no search.

func quantizeF32(dst []byte, src []float32) {
	for i, v := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

func quantizeF16(dst []byte, src []float32) {
	for i, v := range src {
		putHalf(dst[2*i:], v)
	}
}

func quantizeBF16(dst []byte, src []float32) {
	for i, v := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], vector.ToBF16(v))
	}
}

func putHalf(dst []byte, v float32) { binary.LittleEndian.PutUint16(dst, vector.ToF16(v)) }

// largest returns the value of largest magnitude, with its sign; the first of
// equals.
func largest(v []float32) float32 {
	var m float32
	for _, x := range v {
		if abs(x) > abs(m) {
			m = x
		}
	}
	return m
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// inverse returns 1/d, and 0 for a block of zeros or of values so small that the
// quotient overflows: their f16 scale is 0 too.
func inverse(d float32) float32 {
	if abs(d) < 0x1p-126 {
		return 0
	}
	return 1 / d
}

// finite reports whether v is free of infinities and NaNs, which have no scale.
func finite(v []float32) bool {
	for _, x := range v {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return false
		}
	}
	return true
}

func quantizeQ8_0(dst []byte, src []float32) {
	for len(src) > 0 {
		d := abs(largest(src[:32])) / 127
		id := inverse(d)
		putHalf(dst, d)
		for i, v := range src[:32] {
			dst[2+i] = byte(int8(math.Round(float64(v * id))))
		}
		dst, src = dst[34:], src[32:]
	}
}

// Q4_0 maps the value of largest magnitude to code 0 (−8), whatever its sign.
func quantizeQ4_0(dst []byte, src []float32) {
	for len(src) > 0 {
		d := largest(src[:32]) / -8
		id := inverse(d)
		putHalf(dst, d)
		code := func(v float32) byte { return min(15, byte(int8(float32(v*id)+8.5))) }
		for i := range 16 {
			dst[2+i] = code(src[i]) | code(src[16+i])<<4
		}
		dst, src = dst[18:], src[32:]
	}
}

// trit rounds v/d to the nearest of 0, 1, 2 (the code of −1, 0, +1).
func trit(v, id float32) uint {
	return uint(int(math.Round(float64(v*id))) + 1)
}

func quantizeTQ1_0(dst []byte, src []float32) {
	for len(src) > 0 {
		d := abs(largest(src[:256]))
		id := inverse(d)
		packDigits(dst[:32], src, 5, id)
		packDigits(dst[32:48], src[160:], 5, id)
		packDigits(dst[48:52], src[240:], 4, id)
		putHalf(dst[52:], d)
		dst, src = dst[54:], src[256:]
	}
}

// packDigits reverses tritsOf: each byte of dst gets n trits of v,
// len(dst) apart.
func packDigits(dst []byte, v []float32, n int, id float32) {
	for i := range dst {
		q := uint(0)
		for k := range 5 {
			q *= 3
			if k < n {
				q += trit(v[i+k*len(dst)], id)
			}
		}
		dst[i] = byte((q*256 + 242) / 243) // round up, so that digits read back exactly
	}
}

func quantizeTQ2_0(dst []byte, src []float32) {
	for len(src) > 0 {
		d := abs(largest(src[:256]))
		id := inverse(d)
		for h := range 2 {
			for i := range 32 {
				q := uint(0)
				for l := range 4 {
					q |= trit(src[128*h+32*l+i], id) << (2 * l)
				}
				dst[32*h+i] = byte(q)
			}
		}
		putHalf(dst[64:], d)
		dst, src = dst[66:], src[256:]
	}
}
