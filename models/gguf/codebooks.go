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
	iq2xxs [256]uint64
	iq2xs  [512]uint64
	iq2s   [1024]uint64
	iq1    [2048]uint64
	iq3xxs [256]uint64 // of four codes
	iq3s   [512]uint64
}

// What codes of codebooks stand for. Signs, or that codes of IQ1 are lowered by an eighth and not
// raised, are the bit above them.
var (
	levelsIQ2    = [16]int8{8, 25, 43, 0, -8, -25, -43}
	levelsIQ1    = [16]int8{-7, 1, 9, 0, -9, -1, 7}                                             // in eighths
	levelsIQ3XXS = [16]int8{2, 6, 10, 14, 18, 22, 26, 31, -2, -6, -10, -14, -18, -22, -26, -31} // half of ggml's
	levelsIQ3S   = [16]int8{1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15}
)

const (
	aboveTwo   = 4 * eachByte // the bit above codes of two bits
	aboveThree = 8 * eachByte
)

var unpacked = sync.OnceValue(func() *books {
	words, b := codebooks, new(books)
	for _, book := range []struct {
		entries  []uint64
		n, width int // codes an entry, bits a code
	}{{b.iq2xxs[:], 8, 2}, {b.iq2xs[:], 8, 2}, {b.iq2s[:], 8, 2}, {b.iq1[:], 8, 2}, {b.iq3xxs[:], 4, 3}, {b.iq3s[:], 4, 3}} {
		for e := range book.entries {
			w := binary.LittleEndian.Uint16(words)
			for j := range book.n {
				book.entries[e] |= uint64(w>>(j*book.width)&(1<<book.width-1)) << (8 * j)
			}
			words = words[2:]
		}
	}
	return b
})

// eachByte has a one in each byte.
const eachByte = 0x0101010101010101

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
	book := &unpacked().iq2xxs
	s.D = half(block) / 8
	for g := range 8 {
		v, codes := binary.LittleEndian.Uint64(block[2+8*g:]), (*[4]uint64)(s.Codes[4*g:])
		s.both(g, byte(v>>60))
		codes[0] = book[v&255] | evenSigns[v>>32&127]&aboveTwo
		codes[1] = book[v>>8&255] | evenSigns[v>>39&127]&aboveTwo
		codes[2] = book[v>>16&255] | evenSigns[v>>46&127]&aboveTwo
		codes[3] = book[v>>24&255] | evenSigns[v>>53&127]&aboveTwo
	}
}

// IQ2_XS: f16 scale; each eight values nine bits of index and seven signs; each 16 values
// four bits of scale.
func readIQ2_XS(s *Superblock, block []byte) {
	book := &unpacked().iq2xs
	s.D = half(block) / 8
	for g := range 8 {
		v, codes := binary.LittleEndian.Uint64(block[2+8*g:]), (*[4]uint64)(s.Codes[4*g:])
		codes[0] = book[v&511] | evenSigns[v>>9&127]&aboveTwo
		codes[1] = book[v>>16&511] | evenSigns[v>>25&127]&aboveTwo
		codes[2] = book[v>>32&511] | evenSigns[v>>41&127]&aboveTwo
		codes[3] = book[v>>48&511] | evenSigns[v>>57]&aboveTwo
	}
	s.nibbleScales((*[8]byte)(block[66:]))
}

// nibbleScales sets the scales of 16 values each.
func (s *Superblock) nibbleScales(packed *[8]byte) {
	for g, p := range packed {
		s.Scales[2*g], s.Scales[2*g+1] = odd(p&15), odd(p>>4)
	}
}

// IQ2_S: f16 scale; each eight values an index of eight bits, then as many signs, then two
// more bits of each index; each 16 values four bits of scale.
func readIQ2_S(s *Superblock, block []byte) {
	book := &unpacked().iq2s
	s.D = half(block) / 8
	for g, high := range (*[8]byte)(block[66:]) {
		v, n, h := binary.LittleEndian.Uint32(block[2+4*g:]), (*[4]byte)(block[34+4*g:]), uint32(high)
		codes := (*[4]uint64)(s.Codes[4*g:])
		codes[0] = book[v&255|h<<8&0x300] | signs[n[0]]&aboveTwo
		codes[1] = book[v>>8&255|h<<6&0x300] | signs[n[1]]&aboveTwo
		codes[2] = book[v>>16&255|h<<4&0x300] | signs[n[2]]&aboveTwo
		codes[3] = book[v>>24|h<<2&0x300] | signs[n[3]]&aboveTwo
	}
	s.nibbleScales((*[8]byte)(block[74:]))
}

// IQ3_XXS: f16 scale; each four values an index; then each 32 values four times seven
// signs, and four bits of scale.
func readIQ3_XXS(s *Superblock, block []byte) {
	book := &unpacked().iq3xxs
	s.D = half(block) / 2
	for g := range 8 {
		v, signs := (*[8]byte)(block[2+8*g:]), binary.LittleEndian.Uint32(block[66+4*g:])
		codes := (*[4]uint64)(s.Codes[4*g:])
		s.both(g, byte(signs>>28))
		codes[0] = book[v[0]] | book[v[1]]<<32 | evenSigns[signs&127]&aboveThree
		codes[1] = book[v[2]] | book[v[3]]<<32 | evenSigns[signs>>7&127]&aboveThree
		codes[2] = book[v[4]] | book[v[5]]<<32 | evenSigns[signs>>14&127]&aboveThree
		codes[3] = book[v[6]] | book[v[7]]<<32 | evenSigns[signs>>21&127]&aboveThree
	}
}

// IQ3_S: f16 scale; each four values an index of eight bits, then a ninth; a sign each
// value; each 32 values four bits of scale.
func readIQ3_S(s *Superblock, block []byte) {
	book := &unpacked().iq3s
	s.D = half(block)
	for g, ninth := range (*[8]byte)(block[66:]) {
		v, n, h := (*[8]byte)(block[2+8*g:]), (*[4]byte)(block[74+4*g:]), uint32(ninth)
		codes := (*[4]uint64)(s.Codes[4*g:])
		codes[0] = book[uint32(v[0])|h<<8&256] | book[uint32(v[1])|h<<7&256]<<32 | signs[n[0]]&aboveThree
		codes[1] = book[uint32(v[2])|h<<6&256] | book[uint32(v[3])|h<<5&256]<<32 | signs[n[1]]&aboveThree
		codes[2] = book[uint32(v[4])|h<<4&256] | book[uint32(v[5])|h<<3&256]<<32 | signs[n[2]]&aboveThree
		codes[3] = book[uint32(v[6])|h<<2&256] | book[uint32(v[7])|h<<1&256]<<32 | signs[n[3]]&aboveThree
		s.both(g, block[106+g/2]>>(g%2*4)&15)
	}
}

// IQ1_S: f16 scale; each eight values an index of eight bits; then each 32 values four
// times three more bits of index, three of scale, and whether codes are lowered.
func readIQ1_S(s *Superblock, block []byte) {
	book := &unpacked().iq1
	s.D = half(block) / 8
	for g := range 8 {
		v, h := binary.LittleEndian.Uint32(block[2+4*g:]), uint32(binary.LittleEndian.Uint16(block[34+2*g:]))
		codes, lowered := (*[4]uint64)(s.Codes[4*g:]), uint64(h>>15)*aboveTwo
		s.both(g, byte(h>>12&7))
		codes[0] = book[v&255|h<<8&0x700] | lowered
		codes[1] = book[v>>8&255|h<<5&0x700] | lowered
		codes[2] = book[v>>16&255|h<<2&0x700] | lowered
		codes[3] = book[v>>24|h>>1&0x700] | lowered
	}
}

// IQ1_M: each eight values an index of eight bits, then a nibble of three more bits and whether codes are lowered.
// Each 64 values have a word of four times three bits of scale and four bits of the block's f16 scale.
func readIQ1_M(s *Superblock, block []byte) {
	book := &unpacked().iq1
	indices, nibbles, scales := (*[32]byte)(block), (*[16]byte)(block[32:]), block[48:56]
	s.D = scaleIQ1M(block) / 8
	for i, n := range nibbles {
		n := uint32(n)
		codes, v := (*[2]uint64)(s.Codes[2*i:]), (*[2]byte)(indices[2*i:])
		codes[0] = book[uint32(v[0])|n<<8&0x700] | uint64(n>>3&1)*aboveTwo
		codes[1] = book[uint32(v[1])|n<<4&0x700] | uint64(n>>7)*aboveTwo
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
		for i := range 2 {
			q := binary.LittleEndian.Uint64(codes[16*g+8*i:])
			s.Codes[4*g+i], s.Codes[4*g+2+i] = q&(15*eachByte), q>>4&(15*eachByte)
		}
	}
}
