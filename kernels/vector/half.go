package vector

import "math"

// F32ToF16 narrows to IEEE binary16, rounding to nearest even; too large
// values become infinities. dst must be at least as long as src.
func F32ToF16(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	done := f32ToF16Fast(dst, src)
	for i := done; i < len(src); i++ {
		dst[i] = ToF16(src[i])
	}
}

// FromF16 widens an IEEE binary16.
func FromF16(h uint16) float32 {
	sign, m := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	if m >= 0x7c00 {
		if m > 0x7c00 {
			m |= 0x200 // conversions quieten NaNs, as the hardware does
		}
		return math.Float32frombits(sign | 0xff<<23 | m&0x3ff<<13)
	}
	// Moved to a float's place, the exponent is 112 too small; the product is
	// exact and makes subnormals normal. No branch: zeros are common.
	f := math.Float32frombits(m<<13) * 0x1p112
	return math.Float32frombits(math.Float32bits(f) | sign)
}

// ToF16 narrows to IEEE binary16, rounding to nearest even.
func ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13)&0x3ff
	case b >= 0x477ff000: // 65520 and above round to infinity
		return sign | 0x7c00
	case b < 0x38800000: // below 2⁻¹⁴: adding 0.5 aligns the ulp to 2⁻²⁴ and rounds
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-112<<23)>>13)
}

// FromBF16 widens a bfloat16.
func FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// ToBF16 narrows to bfloat16, rounding to nearest even.
func ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
