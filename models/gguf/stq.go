package gguf

import "cmp"

// STQ1_0 (Sherry, arXiv 2601.07892; pull request 22836 of ggml-org/llama.cpp, number 43): blocks of
// 256 weights in 42 bytes,
//
//	| slot[32] | sign[8] | d |   slot: 64 times four bits, sign: 64 bits, lowest first; f16 scale
//
// Group g is columns 64·(g/16) + g%16 + 16·(0..3), of which one is zero and three are ±d. slot>>2 says
// which is zero. Its bits 0 and 1 say whether the second and the third of the others differ in sign from
// the first, which is positive unless sign is set.

// groupsSTQ1 are the trits of a group by slot | sign<<4, column i in byte i, one above their value.
var groupsSTQ1 = func() (groups [32]uint64) {
	for code := range groups {
		at := 0
		for i := range 4 {
			trit := 1
			if i != code>>2&3 {
				trit = 2
				if at > 0 && code>>(at-1)&1 != code>>4 || at == 0 && code>>4 == 1 {
					trit = 0
				}
				at++
			}
			groups[code] |= uint64(trit) << (8 * i)
		}
	}
	return groups
}()

// pairsSTQ1 reads STQ1_0.
func pairsSTQ1(dst, block []byte) {
	slots, signs := block[:32], block[32:40]
	for g := 0; g < 64; g += 4 { // neighbouring columns, which are codes of a byte
		var v uint64
		for i := range 4 {
			code := slots[(g+i)/2]>>(4*(i%2))&15 | signs[g/8]>>(g%8+i)&1<<4
			v |= groupsSTQ1[code] << (2 * i)
		}
		out := dst[g/16*16+g%16/4:]
		out[0], out[4], out[8], out[12] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
}

// isSparse reports whether STQ1_0 holds src, whole blocks, but for the rounding of scales.
func isSparse(src []float32) bool {
	for ; len(src) > 0; src = src[256:] {
		d := abs(largest(src[:256]))
		if d == 0 {
			continue
		}
		for g := range 64 {
			zeros := 0
			for i := range 4 {
				switch abs(src[columnSTQ1(g, i)]) {
				case 0:
					zeros++
				case d:
				default:
					return false
				}
			}
			if zeros != 1 {
				return false
			}
		}
	}
	return true
}

// columnSTQ1 is where weight i of group g of a block is.
func columnSTQ1(g, i int) int { return g/16*64 + g%16 + 16*i }

// quantizeSTQ1_0 writes what is sparse, exactly but for the scale.
func quantizeSTQ1_0(dst []byte, src []float32) {
	for len(src) > 0 {
		clear(dst[:40])
		for g := range 64 {
			var trits uint64
			for i := range 4 {
				trits |= uint64(1+cmp.Compare(src[columnSTQ1(g, i)], 0)) << (8 * i)
			}
			code := codesSTQ1[trits] // 0 of a block of zeros
			dst[g/2] |= code & 15 << (4 * (g % 2))
			dst[32+g/8] |= code >> 4 << (g % 8)
		}
		putHalf(dst[40:], abs(largest(src[:256])))
		dst, src = dst[42:], src[256:]
	}
}

// codesSTQ1 finds the code of a group's trits.
var codesSTQ1 = func() map[uint64]byte {
	codes := map[uint64]byte{}
	for code, trits := range groupsSTQ1 {
		codes[trits] = byte(code)
	}
	return codes
}()
