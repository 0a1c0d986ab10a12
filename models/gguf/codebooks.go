package gguf

import (
	_ "embed"
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// codebooks are ggml's tables of groups of codes (iq2xxs_grid to iq3s_grid of its
// ggml-common.h, MIT License): little-endian words of 16 bits, each eight codes of two
// bits or four of three, the first lowest, which count the levels.
//
//go:embed codebooks.bin
var codebooks []byte

// books are the codebooks unpacked: eight codes a number, the first one lowest.
type books struct {
	iq2xxs, iq2xs, iq2s []uint64
	iq1                 [2][]uint64 // raised and lowered by an eighth
	iq3xxs, iq3s        []uint64    // of four codes
}

var unpacked = sync.OnceValue(func() *books {
	words := codebooks
	peek := func(entries, n int, levels ...int8) []uint64 {
		list := make([]uint64, entries)
		width := bits.Len(uint(len(levels) - 1))
		for e := range list {
			w := binary.LittleEndian.Uint16(words[2*e:])
			for j := range n {
				list[e] |= uint64(byte(levels[w>>(j*width)&(1<<width-1)])) << (8 * j)
			}
		}
		return list
	}
	next := func(entries, n int, levels ...int8) []uint64 {
		list := peek(entries, n, levels...)
		words = words[2*entries:]
		return list
	}
	return &books{
		iq2xxs: next(256, 8, 8, 25, 43), iq2xs: next(512, 8, 8, 25, 43), iq2s: next(1024, 8, 8, 25, 43),
		iq1:    [2][]uint64{peek(2048, 8, -7, 1, 9), next(2048, 8, -9, -1, 7)}, // in eighths
		iq3xxs: next(256, 4, 2, 6, 10, 14, 18, 22, 26, 31),                     // half of ggml's, as small as levels of NL4S are
		iq3s:   next(512, 4, 1, 3, 5, 7, 9, 11, 13, 15),
	}
})

// eachByte has a one in each byte.
const eachByte = 0x0101010101010101

// put sets group g of eight codes to those of an entry, none of which is zero, negative where signs
// have 0xff.
func (s *Superblock) put(g int, entry, signs uint64) {
	s.Codes[g] = entry ^ signs + signs&eachByte // no byte carries
}

// signs have 0xff in byte i where the number has bit i.
var signs = func() (list [256]uint64) {
	for n := range list {
		for j := range 8 {
			list[n] |= uint64(n>>j&1) * 0xff << (8 * j)
		}
	}
	return list
}()

// evenSigns complete seven signs by an eighth: their number is even.
var evenSigns = func() (list [128]uint64) {
	for n := range list {
		list[n] = signs[byte(n)|byte(bits.OnesCount8(byte(n)))<<7]
	}
	return list
}()

// both sets the scales of 32 values from the odd number 2·bits + 1.
func (s *Superblock) both(g int, bits byte) { s.Scales[2*g], s.Scales[2*g+1] = odd(bits), odd(bits) }

func odd(bits byte) int8 { return int8(2*bits + 1) }

// IQ2_XXS: f16 scale; each 32 values four indices of eight codes, then four times seven
// signs, and four bits of scale.
func readIQ2_XXS(s *Superblock, block []byte) {
	book := unpacked().iq2xxs
	s.D = half(block) / 8
	for g := range 8 {
		b := block[2+8*g:]
		signs := binary.LittleEndian.Uint32(b[4:])
		s.both(g, byte(signs>>28))
		for l := range 4 {
			s.put(4*g+l, book[b[l]], evenSigns[signs>>(7*l)&127])
		}
	}
}

// IQ2_XS: f16 scale; each eight values nine bits of index and seven signs; each 16 values
// four bits of scale.
func readIQ2_XS(s *Superblock, block []byte) {
	book := unpacked().iq2xs
	s.D = half(block) / 8
	for g := range 32 {
		w := uint32(binary.LittleEndian.Uint16(block[2+2*g:]))
		s.put(g, book[w&511], evenSigns[w>>9&127])
	}
	s.nibbleScales(block[66:])
}

// nibbleScales sets the scales of 16 values each.
func (s *Superblock) nibbleScales(packed []byte) {
	for g := range s.Scales {
		s.Scales[g] = odd(packed[g/2] >> (g % 2 * 4) & 15)
	}
}

// IQ2_S: f16 scale; each eight values an index of eight bits, then as many signs, then two
// more bits of each index; each 16 values four bits of scale.
func readIQ2_S(s *Superblock, block []byte) {
	book := unpacked().iq2s
	s.D = half(block) / 8
	indices, negative, high := block[2:34], block[34:66], block[66:74]
	for g := range 32 {
		top := int(high[g/4]>>(g%4*2)&3) << 8
		s.put(g, book[int(indices[g])|top], signs[negative[g]])
	}
	s.nibbleScales(block[74:])
}

// IQ3_XXS: f16 scale; each four values an index; then each 32 values four times seven
// signs, and four bits of scale.
func readIQ3_XXS(s *Superblock, block []byte) {
	book := unpacked().iq3xxs
	s.D = half(block) / 2
	indices := block[2:66]
	for g := range 8 {
		signs := binary.LittleEndian.Uint32(block[66+4*g:])
		s.both(g, byte(signs>>28))
		for l := range 4 {
			at := 8*g + 2*l
			s.put(4*g+l, book[indices[at]]|book[indices[at+1]]<<32, evenSigns[signs>>(7*l)&127])
		}
	}
}

// IQ3_S: f16 scale; each four values an index of eight bits, then a ninth; a sign each
// value; each 32 values four bits of scale.
func readIQ3_S(s *Superblock, block []byte) {
	book := unpacked().iq3s
	s.D = half(block)
	indices, ninth, negative, scales := block[2:66], block[66:74], block[74:106], block[106:110]
	at := func(i int) uint64 { return book[int(indices[i])|int(ninth[i/8]>>(i%8)&1)<<8] }
	for g := range 32 {
		s.put(g, at(2*g)|at(2*g+1)<<32, signs[negative[g]])
	}
	for g := range 8 {
		s.both(g, scales[g/2]>>(g%2*4)&15)
	}
}

// IQ1_S: f16 scale; each eight values an index of eight bits; then each 32 values four
// times three more bits of index, three of scale, and whether codes are lowered.
func readIQ1_S(s *Superblock, block []byte) {
	book := unpacked().iq1
	s.D = half(block) / 8
	for g := range 8 {
		h := int(binary.LittleEndian.Uint16(block[34+2*g:]))
		s.both(g, byte(h>>12&7))
		for l := range 4 {
			s.Codes[4*g+l] = book[h>>15][int(block[2+4*g+l])|h>>(3*l)&7<<8]
		}
	}
}

// IQ1_M: each eight values an index of eight bits; then a nibble of three more bits and
// whether codes are lowered; each 64 values a word of four times three bits of scale and
// four bits of the block's f16 scale.
func readIQ1_M(s *Superblock, block []byte) {
	book := unpacked().iq1
	indices, nibbles, scales := block[:32], block[32:48], block[48:56]
	s.D = scaleIQ1M(block) / 8
	for g := range 32 {
		n := nibbles[g/2] >> (g % 2 * 4)
		s.Codes[g] = book[n>>3&1][int(indices[g])|int(n&7)<<8]
	}
	for g := range s.Scales {
		s.Scales[g] = odd(byte(binary.LittleEndian.Uint16(scales[g/4*2:])>>(g%4*3)) & 7)
	}
}

// scaleIQ1M returns the scale of a block of IQ1_M.
func scaleIQ1M(block []byte) float32 { return vector.FromF16(scaleBitsIQ1M(block)) }

// scaleBitsIQ1M joins the binary16 number that lies in the highest nibbles of four words.
func scaleBitsIQ1M(block []byte) (bits uint16) {
	for i := range 4 {
		bits |= uint16(block[49+2*i]>>4) << (4 * i)
	}
	return bits
}

// IQ4_XS: f16 scale; each 32 values two bits of scale, then four more, 32 above their
// value; codes as in IQ4_NL.
func readIQ4_XS(s *Superblock, block []byte) {
	s.D = half(block)
	high, low, codes := binary.LittleEndian.Uint16(block[2:]), block[4:8], block[8:136]
	for g := range 8 {
		scale := int8(low[g/2]>>(g%2*4)&15|byte(high>>(2*g)&3)<<4) - 32
		s.Scales[2*g], s.Scales[2*g+1] = scale, scale
		low, high := (*[2]uint64)(s.Codes[4*g:]), (*[2]uint64)(s.Codes[4*g+2:])
		clear(s.Codes[4*g : 4*g+4])
		for i, q := range codes[16*g : 16*g+16] {
			low[i/8] |= uint64(byte(levelsIQ4NL[q&15])) << (i % 8 * 8)
			high[i/8] |= uint64(byte(levelsIQ4NL[q>>4])) << (i % 8 * 8)
		}
	}
}
