package gguf

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// The block layouts are those of ggml-common.h; the formulas those of
// dequantize_row_* in ggml-quants.c. Each function takes whole blocks.

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

// TQ1_0: trits in base 3, 5 a byte (48 bytes: 32, then 16) and 4 a byte (4
// bytes), f16 scale.
func dequantizeTQ1_0(dst []float32, src []byte) {
	var codes [256]int8
	for len(dst) > 0 {
		tritsTQ1_0(&codes, src)
		scaleTrits(dst, codes[:], half(src[52:]))
		dst, src = dst[256:], src[54:]
	}
}

func tritsTQ1_0(codes *[256]int8, src []byte) {
	rest := unpackDigits(codes[:], src[:32], 5)
	rest = unpackDigits(rest, src[32:48], 5)
	unpackDigits(rest, src[48:52], 4)
}

// unpackDigits sets dst to n trits of each byte of q, the first of all bytes
// before the second, and returns the rest of dst. A byte is the fraction of its
// base-3 digits scaled to 256, so digit k is the integer part of 3 × frac(q·3ᵏ).
func unpackDigits(dst []int8, q []byte, n int) []int8 {
	pow := byte(1)
	for range n {
		for i, b := range q {
			dst[i] = int8(uint16(b*pow)*3>>8) - 1
		}
		dst = dst[len(q):]
		pow *= 3
	}
	return dst
}

// TQ2_0: 64 bytes of 2-bit codes, f16 scale. Bits 2l of byte i of a half are
// value 32·l+i, stored as code−1: code 3 reads as +2.
func dequantizeTQ2_0(dst []float32, src []byte) {
	var codes [256]int8
	for len(dst) > 0 {
		tritsTQ2_0(&codes, src)
		scaleTrits(dst, codes[:], half(src[64:]))
		dst, src = dst[256:], src[66:]
	}
}

func tritsTQ2_0(codes *[256]int8, src []byte) {
	for h := range 2 {
		for l := range 4 {
			out := codes[128*h+32*l:]
			for i, q := range src[32*h : 32*h+32] {
				out[i] = int8(q>>(2*l)&3) - 1
			}
		}
	}
}

// I2_S (bitnet.cpp): 32 bytes of 2-bit codes for 128 values, the first 32 in
// the top bits. The scale follows the last block of the tensor.
func dequantizeI2_S(dst []float32, src []byte) {
	for len(dst) > 0 {
		for l := range 4 {
			for i, q := range src[:32] {
				dst[32*l+i] = float32(int(q>>(6-2*l)&3) - 1)
			}
		}
		dst, src = dst[128:], src[32:]
	}
}

func scaleTrits(dst []float32, codes []int8, d float32) {
	for i, c := range codes {
		dst[i] = float32(c) * d
	}
}

// Codes unpacks block b of a TQ1_0 or TQ2_0 tensor into its integer codes and
// returns its scale. Codes are −1 to +1; ternary is false
// when +2 occurs, which only TQ2_0 can spell.
func (t *Tensor) Codes(codes *[256]int8, b int) (scale float32, ternary bool) {
	size := t.Type.BlockBytes()
	block := t.Data[b*size:][:size]
	ternary = true
	switch t.Type {
	case TQ1_0:
		tritsTQ1_0(codes, block)
	case TQ2_0:
		tritsTQ2_0(codes, block)
		both := uint64(0) // bit pairs that are 3
		for i := 0; i < 64; i += 8 {
			q := binary.LittleEndian.Uint64(block[i:])
			both |= q & (q >> 1) & 0x5555555555555555
		}
		ternary = both == 0
	default:
		panic(fmt.Sprintf("gguf: tensor %q of type %v has no ternary codes", t.Name, t.Type))
	}
	return half(block[size-2:]), ternary
}
