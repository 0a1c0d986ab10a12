package gguf

import "math"

// NVFP4 (NVIDIA 2025, "Pretraining Large Language Models with NVFP4", §2) has blocks of 64 values in 36
// bytes. Each 16 of them have a scale of four bits of exponent and three of mantissa:
//
//	| d[4] | qs[32] |   byte 8s+i of qs holds codes 16s+i (low nibble) and 16s+i+8
//
// A value is levelsMXFP4[code]·d/2. A scale's highest bit counts for nothing, and 0x7f is zero.

// scaleNVFP4 returns d/2.
func scaleNVFP4(d byte) float32 {
	exponent, mantissa := int(d>>3&15), float64(d&7)
	switch {
	case d == 0x7f:
		return 0
	case exponent == 0:
		return float32(math.Ldexp(mantissa, -10))
	}
	return float32(math.Ldexp(8+mantissa, exponent-11))
}

func dequantizeNVFP4(dst []float32, src []byte) {
	for len(dst) > 0 {
		for s, b := range src[:4] {
			d, out := scaleNVFP4(b), dst[16*s:16*s+16]
			for i, q := range src[4+8*s : 12+8*s] {
				out[i] = float32(levelsMXFP4[q&15]) * d
				out[i+8] = float32(levelsMXFP4[q>>4]) * d
			}
		}
		dst, src = dst[64:], src[36:]
	}
}
