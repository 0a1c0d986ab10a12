package gguf

import "encoding/binary"

// K quants: superblocks of 256 values whose groups have small integer scales,
// themselves scaled by one f16.

// Q2_K: 16 bytes of 4-bit scales (low) and minima (high), one a group of 16;
// 64 bytes of 2-bit codes; f16 scale, f16 minimum.
func dequantizeQ2_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		d, dmin := half(src[80:]), half(src[82:])
		for g := range 16 { // group g lies in bits 2(g/2%4) of 16 bytes
			s := src[g]
			dl, ml := d*float32(s&15), dmin*float32(s>>4)
			codes, shift := src[16+32*(g/8)+16*(g%2):], 2*(g/2%4)
			for i := range 16 {
				dst[16*g+i] = float32(dl*float32(codes[i]>>shift&3)) - ml
			}
		}
		dst, src = dst[256:], src[84:]
	}
}

// Q3_K: 32 bytes of third bits, 64 bytes of 2-bit codes, 12 bytes of 6-bit
// scales (32 above their value), f16 scale. Codes are 4 above their value.
var levelsQ3K = [16]int8{-4, -3, -2, -1, 0, 1, 2, 3}

func readQ3_K(s *Superblock, block []byte) {
	third, pairs := (*[32]byte)(block), (*[64]byte)(block[32:])
	low, high := binary.LittleEndian.Uint64(block[96:]), uint64(binary.LittleEndian.Uint32(block[104:]))
	s.D = half(block[108:])
	high |= high << 30 // bits 2k of the first four bytes, and of the next
	first, last := low&(15*eachByte)|high&(3*eachByte)<<4, low>>4&(15*eachByte)|high>>4&(3*eachByte)<<4
	for g := range 8 {
		s.Scales[g], s.Scales[8+g] = int8(byte(first>>(8*g)))-32, int8(byte(last>>(8*g)))-32
	}
	for g := range 8 { // 32 values: bit pair g%4 of the bytes of a half, third bit g
		pairs := (*[32]byte)(pairs[g/4*32:])
		codes := func(i int) uint64 {
			pair := binary.LittleEndian.Uint64(pairs[8*i:]) >> (g % 4 * 2) & (3 * eachByte)
			return pair | binary.LittleEndian.Uint64(third[8*i:])>>g&eachByte<<2
		}
		*(*[4]uint64)(s.Codes[4*g:]) = [4]uint64{codes(0), codes(1), codes(2), codes(3)}
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

// Q5_K: Q4_K with a fifth bit of each code: 32 bytes between scales and
// nibbles, bit g for group g of 32.
func dequantizeQ5_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		d, dmin := half(src), half(src[2:])
		scales, fifth, codes := src[4:16], src[16:48], src[48:176]
		for g := range 8 {
			s, m := scaleMinK4(g, scales)
			dl, ml := d*float32(s), dmin*float32(m)
			codes, out := (*[32]byte)(codes[g/2*32:]), (*[32]float32)(dst[32*g:])
			for i, h := range fifth {
				q := codes[i&31]>>(g%2*4)&15 | h>>g&1<<4
				out[i&31] = float32(dl*fiveBits[q&31]) - ml
			}
		}
		dst, src = dst[256:], src[176:]
	}
}

// fiveBits are the numbers 0 to 31: finding them takes less than converting does.
var fiveBits = func() (f [32]float32) {
	for i := range f {
		f[i] = float32(i)
	}
	return f
}()

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
