package grouped

import (
	"encoding/binary"
	"slices"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// Levels of ggml's types: the codes of its non-linear four bits (kvalues_iq4nl), and the
// values that entries of the codebooks of other types have, the bit above whose codes is their sign,
// or in IQ1 that they are lowered and not raised.
var (
	LevelsIQ4    = &matrix.Levels{Of: [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}, Scale: 1}
	LevelsIQ3XXS = &matrix.Levels{Of: [16]int8{2, 6, 10, 14, 18, 22, 26, 31, -2, -6, -10, -14, -18, -22, -26, -31}, Scale: 1.0 / 2}
	LevelsIQ3S   = &matrix.Levels{Of: [16]int8{1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15}, Scale: 1}
	LevelsQ3K    = &matrix.Levels{Of: [16]int8{-4, -3, -2, -1, 0, 1, 2, 3}, Scale: 1}
	LevelsIQ2    = &matrix.Levels{Of: [16]int8{8, 25, 43, 0, -8, -25, -43}, Scale: 1.0 / 8}
	LevelsIQ1    = &matrix.Levels{Of: [16]int8{-7, 1, 9, 0, -9, -1, 7}, Scale: 1.0 / 8}
)

// PackIQ4_NL packs IQ4_NL as NL4: blocks of 32 columns in 18 bytes, as Q4_0's, where a weight
// is d·level[q].
func PackIQ4_NL(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size = 18
	if err := matrix.Check("IQ4_NL", rows, cols, acts.GroupCols, size, len(raw)); err != nil {
		return nil, err
	}
	return newLevelled(matrix.NL4, LevelsIQ4, rows, cols, func(w *row, r, g int) {
		b := raw[(r*(cols/acts.GroupCols)+g)*size:][:size]
		w.putHalf(g, 0, b)
		putNibbles(w.planes(g), (*[16]byte)(b[2:]))
	}), nil
}

// PackIQ4_XS packs IQ4_XS as NL4K: superblocks of 256 columns in 136 bytes,
//
//	d f16 · high u16 · low[4] · qs[128]
//
// where a weight is d·(sc-32)·level[q]: group i has four bits of sc in half i%2 of low[i/2], two
// more in bits 2i, 2i+1 of high, and its codes as IQ4_NL has them.
func PackIQ4_XS(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size = 136
	if err := matrix.Check("IQ4_XS", rows, cols, superCols, size, len(raw)); err != nil {
		return nil, err
	}
	return newLevelled(matrix.NL4K, LevelsIQ4, rows, cols, func(w *row, r, u int) {
		b := (*[size]byte)(raw[(r*(cols/superCols)+u)*size:])
		w.putHalf(u, 0, b[:])
		high := binary.LittleEndian.Uint16(b[2:])
		for i := range superGroups {
			*w.small(u, 1, i) = (b[4+i/2]>>(i%2*4)&15 | byte(high>>(2*i)&3)<<4) - 32
			putNibbles(w.planes(u*superGroups+i), (*[16]byte)(b[8+16*i:]))
		}
	}), nil
}

// putNibbles writes a group's codes as IQ4_NL has them: column k in the low half of byte k, k+16
// in the high.
func putNibbles(planes []byte, b *[16]byte) {
	low, high := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	put4H(planes, low, high, low>>4, high>>4)
}

// Superblock is 256 columns of a row: a weight is D·Scales[k/16]·Levels.Of[code].
type Superblock struct {
	D      float32 // a binary16 number times the Scale of the levels
	Scales [16]int8
	Codes  [superCols / 8]uint64 // of levels, eight a number
}

// PackSuperblocks packs what read sets all of s to, superblock u of row r, which calls make on several
// goroutines: as NL3K where levels are eight, else as NL4S or, of large levels, NL4K, of which
// scales 2i and 2i+1 are one.
func PackSuperblocks(levels *matrix.Levels, rows, cols int, read func(s *Superblock, r, u int)) (*matrix.Matrix, error) {
	if err := matrix.Check("superblocks", rows, cols, superCols, 0, 0); err != nil {
		return nil, err
	}
	p, each, put := matrix.NL4K, 2, put4H
	switch {
	case [8]int8(levels.Of[8:]) == [8]int8{}:
		p, each, put = matrix.NL3K, 1, put3H
	case slices.Max(levels.Of[:]) < 32 && slices.Min(levels.Of[:]) >= -32:
		p = matrix.NL4S
	}
	return newLevelled(p, levels, rows, cols, func(w *row, r, u int) {
		s := w.super
		var d [2]byte
		read(s, r, u)
		binary.LittleEndian.PutUint16(d[:], vector.ToF16(s.D/levels.Scale))
		w.putHalf(u, 0, d[:])
		scales := w.smalls(u, 1)
		for i, at := 0, 0; i < len(s.Scales); i, at = i+each, at+bands.Rows {
			scales[at] = byte(s.Scales[i])
		}
		for g := range superGroups {
			q := (*[4]uint64)(s.Codes[4*g:])
			put(w.planes(u*superGroups+g), q[0], q[1], q[2], q[3])
		}
	}), nil
}

// placeOfBit gives the place of the bit of word f of the second half in a plane of NL3K; the bit of
// the first half is two further up.
var placeOfBit = [4]int{0, 1, 4, 5}

// word gives the place of the row's word in a plane of group g.
func (w *row) word(g, plane int) []byte { return w.planes(g)[plane*planeBytes:] }

// put4H writes nibbles of halves.
func put4H(planes []byte, a, b, c, d uint64) { put4(planes, a, c, b, d) }

// put3H writes pairs of bits, and bits of halves.
func put3H(planes []byte, a, b, c, d uint64) {
	to := (*[2*planeBytes + 4]byte)(planes)
	first, second := a|b<<4, c|d<<4 // words 4h and 4h+2 beside one another, and above them 4h+1 and 4h+3
	binary.LittleEndian.PutUint32(to[:], besides(first&(3*eachNibble), 2))
	binary.LittleEndian.PutUint32(to[planeBytes:], besides(second&(3*eachNibble), 2))
	binary.LittleEndian.PutUint32(to[2*planeBytes:], besides(first&(4*eachNibble)|second>>2&eachNibble, 1)) // placeOfBit
}

// eachNibble has a one in each.
const eachNibble = 0x1111111111111111

// levelsOf sets q to the levels of group g.
func (w *row) levelsOf(g int, q *[acts.GroupCols]int8) {
	for k := range q {
		h, f, c := k/16, k/4%4, k%4
		if w.format.codeBytes == nibbleBytes {
			q[k] = w.levels.Of[w.word(g, 2*h+f%2)[c]>>(f/2*4)&15]
			continue
		}
		pair, bit := w.word(g, h)[c]>>(2*f)&3, w.word(g, 2)[c]>>(2-2*h+placeOfBit[f])&1
		q[k] = w.levels.Of[pair|bit<<2]
	}
}

func scalesNL4K(w row, g int) scales {
	u, i := g/superGroups, g%superGroups
	sc := int32(int8(*w.small(u, 1, i)))
	return scales{d: w.halfAt(u, 0), sc: [2]int32{sc, sc}}
}
