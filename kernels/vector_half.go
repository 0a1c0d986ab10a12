package kernels

import "math"

// F16ToF32 widens IEEE binary16 values: dst[i] = src[i], exactly. dst must be
// at least as long as src.
func F16ToF32(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	done := f16ToF32Fast(dst, src)
	for i := done; i < len(src); i++ {
		dst[i] = f16ToF32(src[i])
	}
}

// F32ToF16 narrows to IEEE binary16, rounding to nearest even; too large
// values become infinities. dst must be at least as long as src.
func F32ToF16(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	done := f32ToF16Fast(dst, src)
	for i := done; i < len(src); i++ {
		dst[i] = f32ToF16(src[i])
	}
}

// BF16ToF32 widens bfloat16 values: dst[i] = src[i], exactly. dst must be at
// least as long as src.
func BF16ToF32(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for i, h := range src {
		dst[i] = bf16ToF32(h)
	}
}

// F32ToBF16 narrows to bfloat16, rounding to nearest even. dst must be at
// least as long as src.
func F32ToBF16(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for i, f := range src {
		dst[i] = f32ToBF16(f)
	}
}

func f16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 31
	frac := uint32(h & 0x3ff)
	switch exp {
	case 0: // zero or subnormal: frac · 2⁻²⁴ is exact
		return math.Float32frombits(math.Float32bits(float32(frac)*0x1p-24) | sign)
	case 31:
		if frac != 0 {
			frac |= 0x200 // conversions quieten NaNs, as the hardware does
		}
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

func f32ToF16(f float32) uint16 {
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

func bf16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

func f32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
