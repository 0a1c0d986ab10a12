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
	var halves [256]uint16
	for len(src) > 0 {
		n := min(len(halves), len(src))
		vector.F32ToF16(halves[:], src[:n])
		for i, h := range halves[:n] {
			binary.LittleEndian.PutUint16(dst[2*i:], h)
		}
		dst, src = dst[2*n:], src[n:]
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

// quantizeQ4_1 spans the block's values with 16 levels.
func quantizeQ4_1(dst []byte, src []float32) {
	for len(src) > 0 {
		m, id := putSpan(dst, src[:32], 15)
		for i := range 16 {
			dst[4+i] = spanCode(src[i], m, id, 15) | spanCode(src[16+i], m, id, 15)<<4
		}
		dst, src = dst[20:], src[32:]
	}
}

// quantizeQ5_0 maps the value of largest magnitude to code 0 (−16), whatever its sign.
func quantizeQ5_0(dst []byte, src []float32) {
	var codes [32]byte
	for len(src) > 0 {
		d := largest(src[:32]) / -16
		id := inverse(d)
		putHalf(dst, d)
		for i, v := range src[:32] {
			codes[i] = min(31, byte(int8(float32(v*id)+16.5)))
		}
		PutFifths(dst[2:22], &codes)
		dst, src = dst[22:], src[32:]
	}
}

func quantizeQ5_1(dst []byte, src []float32) {
	var codes [32]byte
	for len(src) > 0 {
		m, id := putSpan(dst, src[:32], 31)
		for i, v := range src[:32] {
			codes[i] = spanCode(v, m, id, 31)
		}
		PutFifths(dst[4:24], &codes)
		dst, src = dst[24:], src[32:]
	}
}

// putSpan writes scale and offset of a block whose least value has code 0 and whose
// largest has top. It returns the offset and the inverse of the scale.
func putSpan(dst []byte, v []float32, top float32) (offset, id float32) {
	low, high := v[0], v[0]
	for _, x := range v {
		if x < low { // the first of equals: zeros have two signs
			low = x
		}
		high = max(high, x)
	}
	d := (high - low) / top
	putHalf(dst, d)
	putHalf(dst[2:], low)
	return low, inverse(d)
}

func spanCode(v, offset, id float32, top byte) byte {
	return min(top, byte(int8(float32((v-offset)*id)+0.5)))
}

// PutFifths writes the 32 codes of a block of Q5_0 or Q5_1: their fifth bits in 4 bytes,
// then 16 bytes of nibbles as in Q4_0.
func PutFifths(dst []byte, codes *[32]byte) {
	fifth := uint32(0)
	for i := range 16 {
		low, high := codes[i], codes[16+i]
		dst[4+i] = low&15 | high<<4
		fifth |= uint32(low>>4)<<i | uint32(high>>4)<<(16+i)
	}
	binary.LittleEndian.PutUint32(dst, fifth)
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
