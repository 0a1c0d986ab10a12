package gguf

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// superblock is a block of 256 values, of ggml's IQ types or Q3_K: value i is
// d·scales[i/16]·codes[i]. Codes of IQ types are entries of codebooks, or levels, with
// signs.
type superblock struct {
	d      float32
	scales [16]int8
	codes  [256]int8
}

// dequantizeSuper returns the traits.dequantize of a type whose blocks of size bytes are
// read by read.
func dequantizeSuper(size int, read func(s *superblock, block []byte)) func(dst []float32, src []byte) {
	return func(dst []float32, src []byte) {
		var s superblock
		for ; len(dst) > 0; dst, src = dst[256:], src[size:] {
			read(&s, src[:size])
			for g, scale := range s.scales {
				d := s.d * float32(scale)
				for i, c := range s.codes[16*g : 16*g+16] {
					dst[16*g+i] = d * float32(c)
				}
			}
		}
	}
}

// recodeQ6 returns a function that writes a block as one of Q6_K, whose codes are 32
// above their value, from −32 to 31. d must be a normal binary16 number, or is rounded.
func recodeQ6(read func(s *superblock, block []byte)) func(dst, src []byte) {
	return func(dst, src []byte) {
		var s superblock
		read(&s, src)
		for h := range 2 { // 128 values
			low, high := (*[64]byte)(dst[64*h:]), (*[32]byte)(dst[128+32*h:])
			codes := (*[128]int8)(s.codes[128*h:])
			for i := range high {
				q0, q1, q2, q3 := byte(codes[i]+32), byte(codes[i+32]+32), byte(codes[i+64]+32), byte(codes[i+96]+32)
				low[i], low[i+32] = q0&15|q2<<4, q1&15|q3<<4
				high[i] = q0>>4 | q1>>4<<2 | q2>>4<<4 | q3>>4<<6
			}
		}
		for g, scale := range s.scales {
			dst[192+g] = byte(scale)
		}
		binary.LittleEndian.PutUint16(dst[208:], vector.ToF16(s.d))
	}
}

// recodeQ8 returns a function that writes a block, whose scales are each of 32 values, as
// blocks of Q8_0 with their scales rounded to binary16.
func recodeQ8(read func(s *superblock, block []byte)) func(dst, src []byte) {
	return func(dst, src []byte) {
		var s superblock
		read(&s, src)
		for g := range 8 {
			out := dst[34*g : 34*g+34]
			binary.LittleEndian.PutUint16(out, vector.ToF16(s.d*float32(s.scales[2*g])))
			for i, c := range s.codes[32*g : 32*g+32] {
				out[2+i] = byte(c)
			}
		}
	}
}
