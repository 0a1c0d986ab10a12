package gguf

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// The block layouts come from ggml-common.h, the formulas from dequantize_row_* in
// ggml-quants.c. Each function takes whole blocks.

func half(b []byte) float32 { return vector.FromF16(binary.LittleEndian.Uint16(b)) }

func dequantizeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func dequantizeF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = half(src[2*i:])
	}
}

func dequantizeBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = vector.FromBF16(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// Q8_0: f16 scale, 32 int8 codes.
func dequantizeQ8_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		d := half(src)
		for i, q := range src[2:34] {
			dst[i] = float32(int8(q)) * d
		}
		dst, src = dst[32:], src[34:]
	}
}

// Q4_0: f16 scale, 16 bytes; byte i holds codes i (low nibble) and i+16, each
// 8 above its value.
func dequantizeQ4_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		d := half(src)
		for i, q := range src[2:18] {
			dst[i] = float32(int(q&15)-8) * d
			dst[i+16] = float32(int(q>>4)-8) * d
		}
		dst, src = dst[32:], src[18:]
	}
}

// Q4_1: f16 scale, f16 offset, nibbles as in Q4_0. Value = d·code + m.
func dequantizeQ4_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		d, m := half(src), half(src[2:])
		for i, q := range src[4:20] {
			// The conversions here and below forbid fusing into one rounding.
			dst[i] = float32(float32(q&15)*d) + m
			dst[i+16] = float32(float32(q>>4)*d) + m
		}
		dst, src = dst[32:], src[20:]
	}
}

// Q5_0: f16 scale, the fifth bits of the 32 codes in 4 bytes, nibbles as in
// Q4_0. Codes are 16 above their value.
func dequantizeQ5_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		d, fifth := half(src), binary.LittleEndian.Uint32(src[2:])
		for i, q := range src[6:22] {
			dst[i] = float32(int(fifthBit(q&15, fifth, i))-16) * d
			dst[i+16] = float32(int(fifthBit(q>>4, fifth, i+16))-16) * d
		}
		dst, src = dst[32:], src[22:]
	}
}

// Q5_1: f16 scale, f16 offset, fifth bits, nibbles. Value = d·code + m.
func dequantizeQ5_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		d, m, fifth := half(src), half(src[2:]), binary.LittleEndian.Uint32(src[4:])
		for i, q := range src[8:24] {
			dst[i] = float32(float32(fifthBit(q&15, fifth, i))*d) + m
			dst[i+16] = float32(float32(fifthBit(q>>4, fifth, i+16))*d) + m
		}
		dst, src = dst[32:], src[24:]
	}
}

// fifthBit completes nibble q with bit i of fifth.
func fifthBit(q byte, fifth uint32, i int) byte { return q | byte(fifth>>i&1)<<4 }

// levelsIQ4NL are the values of the 4-bit codes of IQ4_NL (kvalues_iq4nl).
var levelsIQ4NL = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// IQ4_NL: Q4_0 with unevenly spaced levels.
func dequantizeIQ4_NL(dst []float32, src []byte) {
	for len(dst) > 0 {
		d := half(src)
		for i, q := range src[2:18] {
			dst[i] = d * float32(levelsIQ4NL[q&15])
			dst[i+16] = d * float32(levelsIQ4NL[q>>4])
		}
		dst, src = dst[32:], src[18:]
	}
}
