package layout

import "github.com/lutra-lm/lutra/kernels/vector"

// Largest is the bits of the largest fp16, 65504; with the sign bit, of the least.
const Largest = 0x7bff

// F16 rounds f to fp16, to nearest even. What is too large becomes ±65504, NaN a
// zero: the device knows neither infinities nor NaN.
func F16(f float32) uint16 {
	if f != f {
		return 0
	}
	return vector.ToF16(max(-65504, min(f, 65504)))
}

// F32 returns the value of an fp16, exactly.
func F32(h uint16) float32 { return vector.FromF16(h) }

// FromF32 rounds src to dst as F16 does. src is clamped in place.
func FromF32(dst []uint16, src []float32) {
	for i, f := range src {
		switch {
		case f > 65504:
			src[i] = 65504
		case f < -65504:
			src[i] = -65504
		case f != f:
			src[i] = 0
		}
	}
	vector.F32ToF16(dst, src)
}

// Order maps fp16 bits to integers in the numbers' order; -0 stands before +0.
func Order(h uint16) int16 {
	if h&0x8000 != 0 {
		h ^= 0x7fff
	}
	return int16(h)
}
