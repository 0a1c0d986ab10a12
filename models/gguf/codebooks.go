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

// books are the codebooks unpacked.
type books struct {
	iq2xxs, iq2xs, iq2s, iq1 [][8]int8
	iq3xxs, iq3s             [][8]int8 // of four codes
}

var unpacked = sync.OnceValue(func() *books {
	words := codebooks
	next := func(entries, n int, levels ...int8) [][8]int8 {
		list := make([][8]int8, entries)
		width := bits.Len(uint(len(levels) - 1))
		for e := range list {
			w := binary.LittleEndian.Uint16(words[2*e:])
			for j := range n {
				list[e][j] = levels[w>>(j*width)&(1<<width-1)]
			}
		}
		words = words[2*entries:]
		return list
	}
	return &books{
		iq2xxs: next(256, 8, 8, 25, 43), iq2xs: next(512, 8, 8, 25, 43), iq2s: next(1024, 8, 8, 25, 43),
		iq1:    next(2048, 8, -8, 0, 8),                    // in eighths: see putIQ1
		iq3xxs: next(256, 4, 2, 6, 10, 14, 18, 22, 26, 31), // half of ggml's, as small as levels of NL4S are
		iq3s:   next(512, 4, 1, 3, 5, 7, 9, 11, 13, 15),
	}
})

// put sets group g of eight codes to those of an entry, negative where signs have a bit.
func (s *Superblock) put(g int, entry *[8]int8, signs byte) {
	codes := (*[8]int8)(s.Codes[8*g:])
	a, b := &signed[signs&15], &signed[signs>>4] // no branch, which nobody could foresee
	codes[0], codes[1], codes[2], codes[3] = entry[0]*a[0], entry[1]*a[1], entry[2]*a[2], entry[3]*a[3]
	codes[4], codes[5], codes[6], codes[7] = entry[4]*b[0], entry[5]*b[1], entry[6]*b[2], entry[7]*b[3]
}

// signed are four signs: -1 where a nibble has a bit.
var signed = func() (s [16][4]int8) {
	for n := range s {
		for j := range s[n] {
			s[n][j] = 1 - int8(n>>j&1)*2
		}
	}
	return s
}()

// pairOf makes one entry of two of four codes.
func pairOf(a, b *[8]int8) *[8]int8 {
	return &[8]int8{a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]}
}

// even completes seven signs by an eighth: their number is even.
func even(signs uint32) byte {
	s := byte(signs & 127)
	return s | byte(bits.OnesCount8(s))<<7
}

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
			s.put(4*g+l, &book[b[l]], even(signs>>(7*l)))
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
		s.put(g, &book[w&511], even(w>>9))
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
	indices, signs, high := block[2:34], block[34:66], block[66:74]
	for g := range 32 {
		top := int(high[g/4]>>(g%4*2)&3) << 8
		s.put(g, &book[int(indices[g])|top], signs[g])
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
			s.put(4*g+l, pairOf(&book[indices[at]], &book[indices[at+1]]), even(signs>>(7*l)))
		}
	}
}

// IQ3_S: f16 scale; each four values an index of eight bits, then a ninth; a sign each
// value; each 32 values four bits of scale.
func readIQ3_S(s *Superblock, block []byte) {
	book := unpacked().iq3s
	s.D = half(block)
	indices, ninth, signs, scales := block[2:66], block[66:74], block[74:106], block[106:110]
	at := func(i int) *[8]int8 { return &book[int(indices[i])|int(ninth[i/8]>>(i%8)&1)<<8] }
	for g := range 32 {
		s.put(g, pairOf(at(2*g), at(2*g+1)), signs[g])
	}
	for g := range 8 {
		s.both(g, scales[g/2]>>(g%2*4)&15)
	}
}

// putIQ1 sets group g of eight codes in eighths: an entry's, one more or, if lower, less.
func (s *Superblock) putIQ1(g int, entry *[8]int8, lower bool) {
	delta := int8(1)
	if lower {
		delta = -1
	}
	codes := (*[8]int8)(s.Codes[8*g:])
	for j, c := range entry {
		codes[j] = c + delta
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
			s.putIQ1(4*g+l, &book[int(block[2+4*g+l])|h>>(3*l)&7<<8], h&0x8000 != 0)
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
		s.putIQ1(g, &book[int(indices[g])|int(n&7)<<8], n&8 != 0)
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
		for i, q := range codes[16*g : 16*g+16] {
			s.Codes[32*g+i] = levelsIQ4NL[q&15]
			s.Codes[32*g+16+i] = levelsIQ4NL[q>>4]
		}
	}
}
