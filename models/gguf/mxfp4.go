package gguf

import "math"

// MXFP4 (Rouhani et al. 2023, "Microscaling Data Formats for Deep Learning", §3):
// blocks of 32 values, whose scale is a power of two, in 17 bytes:
//
//	| e | qs[16] |   byte i holds codes i (low nibble) and i+16
//
// A value is levelsMXFP4[code]·2^(e-128): levels are twice the values of e2m1, so that
// they are integers.

// levelsMXFP4 are the values of the codes (kvalues_mxfp4).
var levelsMXFP4 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// scaleMXFP4 returns 2^(e-128).
func scaleMXFP4(e byte) float32 {
	if e < 2 { // below the smallest normal number
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}

// mostMXFP4 is the largest e whose values are all finite.
const mostMXFP4 = 252

func dequantizeMXFP4(dst []float32, src []byte) {
	for len(dst) > 0 {
		d := scaleMXFP4(src[0])
		for i, q := range src[1:17] {
			dst[i] = float32(levelsMXFP4[q&15]) * d
			dst[i+16] = float32(levelsMXFP4[q>>4]) * d
		}
		dst, src = dst[32:], src[17:]
	}
}

// quantizeMXFP4 takes the power of two that brings the largest magnitude to the
// largest level or just below it, and the nearest levels, the first of equals.
func quantizeMXFP4(dst []byte, src []float32) {
	for len(src) > 0 {
		e := byte(0)
		if top := abs(largest(src[:32])); top > 0 {
			e = byte(min(mostMXFP4, max(0, math.Ilogb(float64(top))-2+127)))
		}
		d := scaleMXFP4(e)
		dst[0] = e
		for i := range 16 {
			dst[1+i] = nearestMXFP4(src[i], d) | nearestMXFP4(src[16+i], d)<<4
		}
		dst, src = dst[17:], src[32:]
	}
}

func nearestMXFP4(x, d float32) (code byte) {
	best := float32(math.Inf(1))
	for i, level := range levelsMXFP4 {
		if err := abs(float32(float32(level)*d) - x); err < best {
			best, code = err, byte(i)
		}
	}
	return code
}
