package gguf

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// Superblock is a block of 256 values, of ggml's IQ types or Q3_K: value i is
// D·Scales[i/16]·Codes[i]. Codes of IQ types are entries of codebooks, or levels, with
// signs.
type Superblock struct {
	D      float32
	Scales [16]int8
	Codes  [256]int8
}

// superblocks are the types whose blocks can be read so.
var superblocks = map[Type]func(s *Superblock, block []byte){
	Q3_K: readQ3_K, IQ4_XS: readIQ4_XS, IQ3_S: readIQ3_S, IQ3_XXS: readIQ3_XXS,
	IQ2_S: readIQ2_S, IQ2_XS: readIQ2_XS, IQ2_XXS: readIQ2_XXS, IQ1_M: readIQ1_M, IQ1_S: readIQ1_S,
}

// Superblocks returns what reads a block of the type; nil where blocks are no Superblock.
func (t Type) Superblocks() func(s *Superblock, block []byte) { return superblocks[t] }

// dequantizeSuper returns the traits.dequantize of a type whose blocks of size bytes are
// read by read.
func dequantizeSuper(size int, read func(s *Superblock, block []byte)) func(dst []float32, src []byte) {
	return func(dst []float32, src []byte) {
		var s Superblock
		for ; len(dst) > 0; dst, src = dst[256:], src[size:] {
			read(&s, src[:size])
			for g, scale := range s.Scales {
				d := s.D * float32(scale)
				for i, c := range s.Codes[16*g : 16*g+16] {
					dst[16*g+i] = d * float32(c)
				}
			}
		}
	}
}

// recodeQ6 returns a function that writes a block as one of Q6_K, whose codes are 32
// above their value, from −32 to 31. D must be a normal binary16 number, or is rounded.
func recodeQ6(read func(s *Superblock, block []byte)) func(dst, src []byte) {
	return func(dst, src []byte) {
		var s Superblock
		read(&s, src)
		for h := range 2 { // 128 values
			low, high := (*[64]byte)(dst[64*h:]), (*[32]byte)(dst[128+32*h:])
			codes := (*[128]int8)(s.Codes[128*h:])
			for i := range high {
				q0, q1, q2, q3 := byte(codes[i]+32), byte(codes[i+32]+32), byte(codes[i+64]+32), byte(codes[i+96]+32)
				low[i], low[i+32] = q0&15|q2<<4, q1&15|q3<<4
				high[i] = q0>>4 | q1>>4<<2 | q2>>4<<4 | q3>>4<<6
			}
		}
		for g, scale := range s.Scales {
			dst[192+g] = byte(scale)
		}
		binary.LittleEndian.PutUint16(dst[208:], vector.ToF16(s.D))
	}
}
