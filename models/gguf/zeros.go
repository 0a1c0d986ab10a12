package gguf

import "encoding/binary"

// Types of codes of four bits about a code of zero, as GPTQ, AWQ and compressed-tensors have them:
//
//	Q4_Z32, Q4_Z64, Q4_Z128   | d | z | qs[16] ... |
//
// A value is d·(q - z), z from 0 to 16, which larger ones count as; each 16 bytes hold 32 values as in Q4_0.

// sizeQ4Z returns the bytes of a block of n weights.
func sizeQ4Z(n int) int { return 3 + n/2 }

func dequantizeQ4Z(n int) func(dst []float32, src []byte) {
	return func(dst []float32, src []byte) {
		for ; len(dst) > 0; src = src[sizeQ4Z(n):] {
			d, z := half(src), int(min(16, src[2]))
			for qs := src[3:sizeQ4Z(n)]; len(qs) > 0; dst, qs = dst[32:], qs[16:] {
				for i, q := range qs[:16] {
					dst[i], dst[16+i] = d*float32(int(q&15)-z), d*float32(int(q>>4)-z)
				}
			}
		}
	}
}

// recodeQ4Z returns what writes a block of n weights as blocks of Q5_0, whose code is 16 above its value.
func recodeQ4Z(n int) func(dst, src []byte) {
	return func(dst, src []byte) {
		z := min(16, src[2])
		for qs := src[3:sizeQ4Z(n)]; len(qs) > 0; dst, qs = dst[22:], qs[16:] {
			copy(dst, src[:2])
			fifth := uint32(0)
			for i, q := range qs[:16] {
				low, high := q&15+16-z, q>>4+16-z
				fifth |= uint32(low>>4)<<i | uint32(high>>4)<<(16+i)
				dst[6+i] = low&15 | high<<4
			}
			binary.LittleEndian.PutUint32(dst[2:], fifth)
		}
	}
}
