package grouped

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// Packers of formats whose weights are a scale times a code, plus an offset. The middle of the
// codes is taken off them and goes into the offset, so that what remains is a packing without
// offsets, exactly; offsets are float32, beside it.

// withOffsets gives m an offset each group columns, which are zero so far: [band][Cols/group][16]
// float32, as F32 has them.
func withOffsets(m *matrix.Matrix, group int) {
	cols := m.Cols / group
	m.Offsets = &matrix.Matrix{Rows: m.Rows, Cols: cols, Packing: matrix.F32, Data: matrix.Data(bands.Count(m.Rows) * bands.Rows * cols * 4)}
	if rest := m.Rows % bands.Rows; rest != 0 {
		clear(m.Offsets.Data[m.Rows/bands.Rows*bands.Rows*cols*4:])
	}
}

// offsetsOf gives what holds the offsets of row r of m from group i on.
func offsetsOf(m *matrix.Matrix, r, i int) []byte {
	return m.Data[4*((r/bands.Rows*m.Cols+i)*bands.Rows+r%bands.Rows):]
}

// putOffset sets offset i of those.
func putOffset(of []byte, i int, v float32) {
	binary.LittleEndian.PutUint32(of[4*bands.Rows*i:], math.Float32bits(v))
}

// newShifted does as newLevelled; each group columns have an offset, which pack puts.
func newShifted(p matrix.Packing, levels *matrix.Levels, rows, cols, group int, pack func(w *row, offsets *matrix.Matrix, r, u int)) *matrix.Matrix {
	var whole matrix.Matrix
	whole.Rows, whole.Cols = rows, cols
	withOffsets(&whole, group)
	m := newLevelled(p, levels, rows, cols, func(w *row, r, u int) { pack(w, whole.Offsets, r, u) })
	m.Offsets = whole.Offsets
	return m
}

func halfOf(b []byte) float32 { return vector.FromF16(binary.LittleEndian.Uint16(b)) }

// PackQ4Z packs codes about a code of zero as Q4: blocks of group columns, a multiple of 32, in 3 + group/2
// bytes,
//
//	d f16 · z u8 · qs[group/2], each 16 as in Q4_0
//
// where a weight is d·(q-z), which is d·(q-8) and an offset of d·(8-z), z at most 16.
func PackQ4Z(rows, cols, group int, raw []byte) (*matrix.Matrix, error) {
	size, each := 3+group/2, group/acts.GroupCols
	if err := matrix.Check("Q4_Z", rows, cols, group, size, len(raw)); err != nil {
		return nil, err
	}
	return newShifted(matrix.Q4, nil, rows, cols, group, func(w *row, offsets *matrix.Matrix, r, g int) {
		b := raw[(r*(cols/group)+g/each)*size:][:size]
		w.putHalf(g, 0, b)
		if g%each == 0 {
			putOffset(offsetsOf(offsets, r, g/each), 0, halfOf(b)*float32(8-int(min(16, b[2]))))
		}
		put4x4(w.planes(g), b[3+g%each*16:])
	}), nil
}

// PackQ5_0 packs Q5_0 as Q8: blocks of 32 columns in 22 bytes,
//
//	d f16 · fifth u32 · qs[16], as in Q4_0, the fifth bit of column k in bit k of fifth
//
// where a weight is d·(q-16).
func PackQ5_0(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size = 22
	if err := matrix.Check("Q5_0", rows, cols, acts.GroupCols, size, len(raw)); err != nil {
		return nil, err
	}
	return newMatrix(matrix.Q8, rows, cols, func(w *row, r, g int) {
		b := (*[size]byte)(raw[(r*(cols/acts.GroupCols)+g)*size:])
		w.putHalf(g, 0, b[:])
		putFifths(w.planes(g), (*[20]byte)(b[2:]))
	}), nil
}

// PackQ5_1 packs Q5_1 as Q8: blocks of 32 columns in 24 bytes,
//
//	d f16 · m f16 · fifth u32 · qs[16], as in Q5_0
//
// where a weight is d·q + m, which is d·(q-16) and an offset of m + 16·d.
func PackQ5_1(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size = 24
	if err := matrix.Check("Q5_1", rows, cols, acts.GroupCols, size, len(raw)); err != nil {
		return nil, err
	}
	return newShifted(matrix.Q8, nil, rows, cols, acts.GroupCols, func(w *row, offsets *matrix.Matrix, r, g int) {
		b := (*[size]byte)(raw[(r*(cols/acts.GroupCols)+g)*size:])
		w.putHalf(g, 0, b[:])
		putOffset(offsetsOf(offsets, r, g), 0, halfOf(b[2:])+16*halfOf(b[:]))
		putFifths(w.planes(g), (*[20]byte)(b[4:]))
	}), nil
}

// putFifths writes codes of five bits, less 16, as codes of Q8.
func putFifths(planes []byte, b *[20]byte) {
	low, high := binary.LittleEndian.Uint64(b[4:]), binary.LittleEndian.Uint64(b[12:])
	// A code below 16 gets its sign, in the upper four bits; another one loses the fifth bit.
	below := func(i int) uint64 { return 0xf0*ones ^ bytesOfBits[b[i]]*0xf0 }
	put8(planes, low&lowNibbles|below(0), high&lowNibbles|below(1), low>>4&lowNibbles|below(2), high>>4&lowNibbles|below(3))
}

const ones = 0x0101010101010101

// bytesOfBits has bit k of a byte in byte k.
var bytesOfBits = func() (spread [256]uint64) {
	for q := range spread {
		for k := range 8 {
			spread[q] |= uint64(q>>k&1) << (8 * k)
		}
	}
	return spread
}()

// PackQ5_K packs Q5_K as Q6: superblocks of 256 columns in 176 bytes,
//
//	d f16 · dmin f16 · scales[12] · fifth[32] · qs[128]
//
// with scales and qs as in Q4_K, the fifth bits of group i in bits i of fifth: a weight is
// d·sc·q - dmin·m, which is d·sc·(q-16) and an offset of 16·d·sc - dmin·m.
func PackQ5_K(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size = 176
	if err := matrix.Check("Q5_K", rows, cols, superCols, size, len(raw)); err != nil {
		return nil, err
	}
	return newShifted(matrix.Q6, nil, rows, cols, acts.GroupCols, func(w *row, offsets *matrix.Matrix, r, u int) {
		b := (*[size]byte)(raw[(r*(cols/superCols)+u)*size:])
		w.putHalf(u, 0, b[:])
		d, dmin := halfOf(b[:]), halfOf(b[2:])
		sc, m := sixBitPairs((*[12]byte)(b[4:]))
		scales, least := w.smalls(u, 1), offsetsOf(offsets, r, u*superGroups)
		for i := range superGroups {
			sc, m := byte(sc>>(8*i)), byte(m>>(8*i))
			scales[2*i*bands.Rows], scales[(2*i+1)*bands.Rows] = sc, sc
			putOffset(least, i, d*float32(16*int32(sc))-dmin*float32(m))
		}
		for i := range superGroups {
			qs, fifth := (*[32]byte)(b[48+i/2*32:]), (*[32]byte)(b[16:])
			codes := func(j int) uint64 { // 32 stands for zero
				low, high := binary.LittleEndian.Uint64(qs[8*j:])>>(i%2*4), binary.LittleEndian.Uint64(fifth[8*j:])>>i
				return low&lowNibbles + high&ones<<4 + 16*ones
			}
			put6(w.planes(u*superGroups+i), codes(0), codes(1), codes(2), codes(3))
		}
	}), nil
}

// PackQ2_0C packs Q2_0C as Q2G128: blocks of 512 columns in 130 bytes,
//
//	d f16 · qs[128], as in Q2_0
//
// where a weight is d·(2q-3), which is 2d·(q-1) and an offset of -d. It reports ErrUnsupported for a
// scale twice which binary16 does not hold.
func PackQ2_0C(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size, group, exponent = 130, 512, 0x7c00
	if err := matrix.Check("Q2_0C", rows, cols, group, size, len(raw)); err != nil {
		return nil, err
	}
	for at := 0; at < len(raw); at += size {
		if b := raw[at:]; binary.LittleEndian.Uint16(b)&exponent >= exponent-0x400 {
			return nil, fmt.Errorf("%w: a block of Q2_0C has scale %v", matrix.ErrUnsupported, halfOf(b))
		}
	}
	units := group / UnitCols(matrix.Q2G128)
	return newShifted(matrix.Q2G128, nil, rows, cols, group, func(w *row, offsets *matrix.Matrix, r, u int) {
		b := raw[(r*(cols/group)+u/units)*size:][:size]
		d := halfOf(b)
		binary.LittleEndian.PutUint16(w.half(u, 0), vector.ToF16(2*d))
		if u%units == 0 {
			putOffset(offsetsOf(offsets, r, u/units), 0, -d)
		}
		w.putLow(u, b[2+u%units*(size-2)/units:], &pairsOf)
	}), nil
}

// levelsQ2 are the codes of Q2_K, whose middle is taken off, in halves.
var levelsQ2 = &matrix.Levels{Of: [16]int8{-3, -1, 1, 3}, Scale: 1.0 / 2}

// PackQ2_K packs Q2_K as NL3K: superblocks of 256 columns in 84 bytes,
//
//	scales[16] · qs[64] · d f16 · dmin f16
//
// with sixteen groups of 16, whose sc are the low halves of scales and m the high ones. 32 bytes
// of qs hold half a superblock, column k of it in bits 2(k/32), 2(k/32)+1 of byte k%32: a weight is
// d·sc·q - dmin·m, which is d·sc·(q-1.5) and an offset of 1.5·d·sc - dmin·m.
func PackQ2_K(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size, group = 84, acts.GroupCols / 2
	if err := matrix.Check("Q2_K", rows, cols, superCols, size, len(raw)); err != nil {
		return nil, err
	}
	return newShifted(matrix.NL3K, levelsQ2, rows, cols, group, func(w *row, offsets *matrix.Matrix, r, u int) {
		b := (*[size]byte)(raw[(r*(cols/superCols)+u)*size:])
		w.putHalf(u, 0, b[80:])
		d, dmin := halfOf(b[80:]), halfOf(b[82:])
		scales, least := w.smalls(u, 1), offsetsOf(offsets, r, u*2*superGroups)
		for i, s := range b[:16] {
			scales[i*bands.Rows] = s & 15
			putOffset(least, i, d*(1.5*float32(s&15))-dmin*float32(s>>4))
		}
		for g := range superGroups {
			qs := (*[32]byte)(b[16+g/4*32:])
			planes := (*[2*planeBytes + 4]byte)(w.planes(u*superGroups + g))
			for h := range 2 { // words 4h to 4h+3, two by two; none has a third bit
				a, b := binary.LittleEndian.Uint64(qs[16*h:])>>(g%4*2)&lowPairs, binary.LittleEndian.Uint64(qs[16*h+8:])>>(g%4*2)&lowPairs
				both := a | b<<4
				binary.LittleEndian.PutUint32(planes[h*planeBytes:], uint32(both)|uint32(both>>32)<<2)
			}
			binary.LittleEndian.PutUint32(planes[2*planeBytes:], 0)
		}
	}), nil
}
