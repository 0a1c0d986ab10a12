package gguf

import "math"

// halfToFloat widens an IEEE 754 binary16.
func halfToFloat(h uint16) float32 {
	sign, m := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	if m >= 0x7c00 {
		if m > 0x7c00 {
			m |= 0x200 // a quiet NaN, as hardware converts
		}
		return math.Float32frombits(sign | 0xff<<23 | m&0x3ff<<13)
	}
	// Moved to a float's place, the exponent is 112 too small; the product is
	// exact and makes subnormals normal. No branch: zeros are common.
	f := math.Float32frombits(m<<13) * 0x1p112
	return math.Float32frombits(math.Float32bits(f) | sign)
}

// floatToHalf rounds to the nearest binary16, ties to even; what is too large
// becomes infinity.
func floatToHalf(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00
	case b >= 0x477ff000: // 65520 and more round up to infinity
		return sign | 0x7c00
	case b < 0x38800000: // below 2⁻¹⁴: adding 2⁻¹ leaves frac × 2⁻²⁴, rounded, in the low bits
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

// floatToBrain rounds to the nearest bfloat16, ties to even.
func floatToBrain(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// brainToFloat widens a bfloat16.
func brainToFloat(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
