package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The block layouts are those of ggml-common.h; the formulas those of
// dequantize_row_* in ggml-quants.c. Each function takes whole blocks.

func half(b []byte) float32 { return halfToFloat(binary.LittleEndian.Uint16(b)) }

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
		dst[i] = brainToFloat(binary.LittleEndian.Uint16(src[2*i:]))
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

// Q4_K: f16 scale and f16 minimum of the block, 8 6-bit scales and 8 6-bit
// minima in 12 bytes, 128 bytes of nibbles. Value = d·scale·code − dmin·min.
func dequantizeQ4_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		d, dmin := half(src), half(src[2:])
		scales, codes := src[4:16], src[16:144]
		for j := range 4 { // 64 values: the low nibbles of 32 bytes, then the high ones
			s0, m0 := scaleMinK4(2*j, scales)
			s1, m1 := scaleMinK4(2*j+1, scales)
			d0, d1 := d*float32(s0), d*float32(s1)
			o0, o1 := dmin*float32(m0), dmin*float32(m1)
			out := dst[64*j : 64*j+64]
			for i, q := range codes[32*j : 32*j+32] {
				// The conversions forbid fusing into one rounding.
				out[i] = float32(d0*float32(q&15)) - o0
				out[i+32] = float32(d1*float32(q>>4)) - o1
			}
		}
		dst, src = dst[256:], src[144:]
	}
}

// scaleMinK4 unpacks the j-th 6-bit scale and minimum of a K block.
func scaleMinK4(j int, q []byte) (scale, minimum byte) {
	if j < 4 {
		return q[j] & 63, q[j+4] & 63
	}
	return q[j+4]&15 | q[j-4]>>6<<4, q[j+4]>>4 | q[j]>>6<<4
}

// Q6_K: 128 bytes of low nibbles, 64 bytes of upper bit pairs, 16 int8 scales
// (one each 16 values), f16 scale. Codes are 32 above their value.
func dequantizeQ6_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		d := half(src[208:])
		for h := range 2 { // 128 values
			low, high := src[64*h:64*h+64], src[128+32*h:128+32*h+32]
			scales := src[192+8*h : 192+8*h+8]
			out := dst[128*h : 128*h+128]
			for i := range 32 {
				g := i / 16
				q0 := low[i]&15 | high[i]&3<<4
				q1 := low[i+32]&15 | high[i]>>2&3<<4
				q2 := low[i]>>4 | high[i]>>4&3<<4
				q3 := low[i+32]>>4 | high[i]>>6<<4
				out[i] = d * float32(int8(scales[g])) * float32(int(q0)-32)
				out[i+32] = d * float32(int8(scales[g+2])) * float32(int(q1)-32)
				out[i+64] = d * float32(int8(scales[g+4])) * float32(int(q2)-32)
				out[i+96] = d * float32(int8(scales[g+6])) * float32(int(q3)-32)
			}
		}
		dst, src = dst[256:], src[210:]
	}
}

// TQ1_0: trits in base 3, 5 a byte (48 bytes: 32, then 16) and 4 a byte (4
// bytes), f16 scale.
func dequantizeTQ1_0(dst []float32, src []byte) {
	var codes [256]int8
	for len(dst) > 0 {
		tritsTQ1_0(&codes, src)
		scaleTrits(dst, &codes, half(src[52:]))
		dst, src = dst[256:], src[54:]
	}
}

// tritsTQ1_0 unpacks a block. A byte is the fraction of its base-3 digits
// scaled to 256, so digit n is the integer part of 3 × frac(q·3ⁿ).
func tritsTQ1_0(codes *[256]int8, src []byte) {
	out := codes[:]
	digits := func(q []byte, n int) {
		pow := byte(1)
		for range n {
			for i, b := range q {
				out[i] = int8(uint16(b*pow)*3>>8) - 1
			}
			out = out[len(q):]
			pow *= 3
		}
	}
	digits(src[:32], 5)
	digits(src[32:48], 5)
	digits(src[48:52], 4)
}

// TQ2_0: 64 bytes of 2-bit codes, f16 scale. Bits 2l of byte i of a half are
// value 32·l+i, stored as code−1: code 3 reads as +2.
func dequantizeTQ2_0(dst []float32, src []byte) {
	var codes [256]int8
	for len(dst) > 0 {
		tritsTQ2_0(&codes, src)
		scaleTrits(dst, &codes, half(src[64:]))
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

func scaleTrits(dst []float32, codes *[256]int8, d float32) {
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
