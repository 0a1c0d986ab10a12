package gguf

import "encoding/binary"

// Recoding tells how tensors of type t can be rewritten in a more common type
// with every value kept exactly: f turns one block into the blocks of type to
// that hold the same elements. f is nil where there is no such type.
func (t Type) Recoding() (to Type, f func(dst, src []byte)) {
	switch t {
	case TQ1_0:
		return Q4_0, func(dst, src []byte) { recodeTrits(dst, src, tritsTQ1_0) }
	case TQ2_0:
		return Q4_0, func(dst, src []byte) { recodeTrits(dst, src, tritsTQ2_0) }
	case Q5_0:
		return Q8_0, recodeQ5_0
	case IQ4_NL:
		return Q8_0, recodeIQ4_NL
	case Q3_K:
		return Q6_K, recodeQ3_K
	}
	return 0, nil
}

// recodeTrits writes a block of ternary codes as 8 of Q4_0, whose code is 8
// above its value. Both ternary types end a block with its scale.
func recodeTrits(dst, src []byte, unpack func(*[256]int8, []byte)) {
	var codes [256]int8
	unpack(&codes, src)
	for g := range 8 {
		out, c := dst[18*g:18*g+18], codes[32*g:32*g+32]
		copy(out, src[len(src)-2:])
		for i := range 16 {
			out[2+i] = byte(c[i]+8) | byte(c[i+16]+8)<<4
		}
	}
}

func recodeQ5_0(dst, src []byte) {
	copy(dst, src[:2])
	fifth := binary.LittleEndian.Uint32(src[2:])
	for i, q := range src[6:22] {
		dst[2+i] = fifthBit(q&15, fifth, i) - 16
		dst[18+i] = fifthBit(q>>4, fifth, i+16) - 16
	}
}

func recodeIQ4_NL(dst, src []byte) {
	copy(dst, src[:2])
	for i, q := range src[2:18] {
		dst[2+i] = byte(levelsIQ4NL[q&15])
		dst[18+i] = byte(levelsIQ4NL[q>>4])
	}
}

// recodeQ3_K writes codes of −4 to 3 as those of Q6_K, 32 above their value;
// both types have 16 groups of 16 under one f16 scale.
func recodeQ3_K(dst, src []byte) {
	var codes [256]int8
	var scales [16]int8
	codesQ3K(&codes, &scales, src)
	clear(dst[:192])
	for i, c := range codes {
		h, j, l := i/128, i%128/32, i%32 // half; nibble and bit pair; byte
		q := byte(c + 32)
		dst[64*h+j%2*32+l] |= q & 15 << (j / 2 * 4)
		dst[128+32*h+l] |= q >> 4 << (2 * j)
	}
	for g, s := range scales {
		dst[192+g] = byte(s)
	}
	copy(dst[208:], src[108:])
}
