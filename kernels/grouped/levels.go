package grouped

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// Levels of ggml's types: the codes of its non-linear four bits (kvalues_iq4nl), and the
// values that entries of the codebooks of other types have, with their signs.
var (
	LevelsIQ4    = &matrix.Levels{Of: [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}, Scale: 1}
	LevelsIQ3XXS = signedLevels(1.0/2, 2, 6, 10, 14, 18, 22, 26, 31)
	LevelsIQ3S   = signedLevels(1, 1, 3, 5, 7, 9, 11, 13, 15)
	LevelsQ3K    = &matrix.Levels{Of: [16]int8{0, 1, 2, 3, -4, -3, -2, -1}, Scale: 1}
	LevelsIQ2    = signedLevels(1.0/8, 8, 25, 43)
	LevelsIQ1    = signedLevels(1.0/8, 1, 7, 9) // {-8, 0, 8} and 1 more or less
)

// signedLevels returns levels of both signs.
func signedLevels(scale float32, sizes ...int8) *matrix.Levels {
	l := &matrix.Levels{Scale: scale}
	for i, s := range sizes {
		l.Of[i], l.Of[len(sizes)+i] = s, -s
	}
	return l
}

// codesOfLevels returns the code of each level, as a byte.
func codesOfLevels(l *matrix.Levels) (codes [256]byte) {
	for c := len(l.Of) - 1; c >= 0; c-- {
		codes[byte(l.Of[c])] = byte(c)
	}
	return codes
}

// coding is how the code of a level follows from it, so that eight are found at once: its magnitude
// shifted, and of that some bits.
type coding struct {
	low, high struct{ shift, mask uint64 } // the code has bits of both
	negative  uint64                       // what is added to codes of negative levels; 0: the shifted level is the code, sign and all
	table     *[256]byte                   // of levels that are in no order; nil: the above
}

func partOf(shift, mask uint64) (b struct{ shift, mask uint64 }) {
	b.shift, b.mask = shift, mask*ones
	return b
}

// codings are those of the levels of superblocks.
var codings = map[*matrix.Levels]coding{
	LevelsIQ2:    {low: partOf(4, 3), negative: 3},
	LevelsIQ1:    {low: partOf(1, 1), high: partOf(2, 2), negative: 3},
	LevelsIQ3XXS: {low: partOf(2, 7), negative: 8},
	LevelsIQ3S:   {low: partOf(1, 7), negative: 8},
	LevelsQ3K:    {low: partOf(0, 7)},
}

// codes returns the codes of eight levels.
func (c *coding) codes(levels uint64) (codes uint64) {
	if c.table != nil {
		for i := range 8 {
			codes |= uint64(c.table[byte(levels>>(8*i))]) << (8 * i)
		}
		return codes
	}
	below := levels >> 7 & ones
	if c.negative == 0 {
		below = 0
	}
	size := levels ^ below*0xff + below // no level is -128, none below zero carries
	return size>>c.low.shift&c.low.mask | size>>c.high.shift&c.high.mask + c.negative*below
}

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
		w.putNibbles(g, (*[16]byte)(b[2:]))
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
			w.putNibbles(u*superGroups+i, (*[16]byte)(b[8+16*i:]))
		}
	}), nil
}

// putNibbles writes a group's codes as IQ4_NL has them: column k in the low half of byte k, k+16
// in the high.
func (w *row) putNibbles(g int, b *[16]byte) {
	var codes levelWords
	for i := range 4 {
		v := binary.LittleEndian.Uint32(b[4*i:])
		codes[i], codes[i+4] = v&fourNibbles, v>>4&fourNibbles
	}
	w.putLevels(g, &codes)
}

// Superblock is 256 columns of a row: a weight is D·Scales[k/16]·Codes[k].
type Superblock struct {
	D      float32 // a binary16 number times the Scale of the levels
	Scales [16]int8
	Codes  [superCols / 8]uint64 // the levels, eight a number
}

// PackSuperblocks packs what read sets all of s to, superblock u of row r, which calls make on several
// goroutines: as NL3K where levels are eight, else as NL4S or, of large levels, NL4K, of which
// scales 2i and 2i+1 are one.
func PackSuperblocks(levels *matrix.Levels, rows, cols int, read func(s *Superblock, r, u int)) (*matrix.Matrix, error) {
	if err := matrix.Check("superblocks", rows, cols, superCols, 0, 0); err != nil {
		return nil, err
	}
	p, each := matrix.NL4K, 1
	switch {
	case [8]int8(levels.Of[8:]) == [8]int8{}:
		p, each = matrix.NL3K, 2
	case slices.Max(levels.Of[:]) < 32 && slices.Min(levels.Of[:]) >= -32:
		p = matrix.NL4S
	}
	coding, ok := codings[levels]
	if !ok {
		table := codesOfLevels(levels)
		coding.table = &table
	}
	blocks := sync.Pool{New: func() any { return new(Superblock) }} // one a goroutine: read has it escape
	return newLevelled(p, levels, rows, cols, func(w *row, r, u int) {
		s := blocks.Get().(*Superblock)
		defer blocks.Put(s)
		var d [2]byte
		read(s, r, u)
		binary.LittleEndian.PutUint16(d[:], vector.ToF16(s.D/levels.Scale))
		w.putHalf(u, 0, d[:])
		for i := range each * superGroups {
			*w.small(u, 1, i) = byte(s.Scales[i*2/each])
		}
		for g := range superGroups {
			var codes levelWords
			for j, levels := range s.Codes[4*g : 4*g+4] {
				both := coding.codes(levels)
				codes[2*j], codes[2*j+1] = uint32(both), uint32(both>>32)
			}
			w.putLevels(u*superGroups+g, &codes)
		}
	}), nil
}

// placeOfBit is where the bit of word f of the second half is, in a plane of NL3K; that of the
// first is two further up.
var placeOfBit = [4]int{0, 1, 4, 5}

// levelWords are a group's codes: word j holds columns 4j..4j+3, a byte each.
type levelWords [acts.GroupCols / 4]uint32

// Masks of four bytes.
const (
	fourNibbles = 0x0f0f0f0f
	fourPairs   = 0x03030303
	fourOnes    = 0x01010101
)

// word gives the place of the row's word in a plane of group g.
func (w *row) word(g, plane int) []byte { return w.planes(g)[plane*planeBytes:] }

// putLevels writes the codes of group g in halves.
func (w *row) putLevels(g int, s *levelWords) {
	if w.format.codeBytes == nibbleBytes {
		for p := range 4 {
			at := p + p&2 // word 4h+p of half h
			binary.LittleEndian.PutUint32(w.word(g, p), s[at]|s[at+2]<<4)
		}
		return
	}
	var bits uint32
	for h := range 2 {
		a, b, c, d := s[4*h], s[4*h+1], s[4*h+2], s[4*h+3]
		binary.LittleEndian.PutUint32(w.word(g, h), a&fourPairs|b&fourPairs<<2|c&fourPairs<<4|d&fourPairs<<6)
		bits |= (a>>2&fourOnes | b>>2&fourOnes<<1 | c>>2&fourOnes<<4 | d>>2&fourOnes<<5) << (2 - 2*h) // placeOfBit
	}
	binary.LittleEndian.PutUint32(w.word(g, 2), bits)
}

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
