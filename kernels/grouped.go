package kernels

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// Grouped packings hold integer codes with scales along K. A band of 16 rows
// is its code groups (32 columns each) followed by its scale units:
//
//	      codes of a group                          scales of a unit
//	Q4    low nibbles                               each 32 columns: d f16[16]
//	Q4M   low nibbles                               each 256 columns: d f16[16], dmin f16[16], 8 × {sc u8[16], m u8[16]}
//	Q6    low nibbles, pairs of high bits           each 256 columns: d f16[16], 16 × sc i8[16]
//	Q8    bytes                                     each 32 columns: d f16[16]
//
// and a weight is
//
//	Q4: d·(code-8)   Q4M: d·sc·code - dmin·m   Q6: d·sc·(code-32)   Q8: d·code
//
// Codes stand so that a 32-bit lane holds four consecutive columns of a row:
// planes of [16 rows][4 bytes]. Step j of a group is columns 4j..4j+3.
//
//	nibbles    plane p of 4: step p in the low half of each byte, p+4 in the high
//	high bits  plane h of 2: step 4h+f in bits 2f, 2f+1
//	bytes      plane j of 8: step j
type groupedFormat struct {
	codeBytes int // of a band's group
	unitBytes int // of a band's scale unit
	unit      int // groups in a scale unit
}

const (
	planeBytes  = bandRows * 4
	nibbleBytes = 4 * planeBytes
	superGroups = 8 // groups of a superblock of 256 columns
)

var groupedFormats = [numPackings]groupedFormat{
	Q4:  {nibbleBytes, 2 * bandRows, 1},
	Q4M: {nibbleBytes, 4*bandRows + superGroups*2*bandRows, superGroups},
	Q6:  {nibbleBytes + 2*planeBytes, 2*bandRows + 2*superGroups*bandRows, superGroups},
	Q8:  {8 * planeBytes, 2 * bandRows, 1},
}

// grouped tells whether p holds integer codes with scales along K.
func (p Packing) grouped() bool { return p < numPackings && groupedFormats[p].unit > 0 }

// bandBytes is the size of a band of cols columns, a multiple of 64.
func (f groupedFormat) bandBytes(cols int) int {
	groups := cols / groupCols
	return (groups*f.codeBytes + groups/f.unit*f.unitBytes + 63) &^ 63
}

// groupedBand gives the codes and the scales of band s.
func (m *Matrix) groupedBand(s int) (codes, scales []byte) {
	f := groupedFormats[m.Packing]
	size, n := f.bandBytes(m.Cols), m.Cols/groupCols*f.codeBytes
	b := m.Data[s*size : (s+1)*size]
	return b[:n], b[n:]
}

// newGrouped allocates a matrix and lets pack fill the rows.
func newGrouped(p Packing, rows, cols int, pack func(r int, w groupedRow)) *Matrix {
	m := &Matrix{Rows: rows, Cols: cols, Packing: p}
	m.Data = cpu.Aligned[byte](m.bands() * m.bandBytes())
	packBands(m.bands(), func(s int) {
		for r := s * bandRows; r < min((s+1)*bandRows, rows); r++ {
			pack(r, m.groupedAt(r))
		}
	})
	return m
}

// groupedRow is one row of a grouped matrix.
type groupedRow struct {
	format        groupedFormat
	lane          int
	codes, scales []byte
}

func (m *Matrix) groupedAt(r int) groupedRow {
	codes, scales := m.groupedBand(r / bandRows)
	return groupedRow{groupedFormats[m.Packing], r % bandRows, codes, scales}
}

// half gives the place of f16 scale i (of 16 lanes each) of unit u.
func (w groupedRow) half(u, i int) []byte {
	return w.scales[u*w.format.unitBytes+i*2*bandRows+2*w.lane:]
}

func (w groupedRow) putHalf(u, i int, raw []byte) { copy(w.half(u, i)[:2], raw[:2]) }

func (w groupedRow) halfAt(u, i int) float32 {
	return vector.FromF16(binary.LittleEndian.Uint16(w.half(u, i)))
}

// small gives byte scale i of superblock u; halves is the number of f16 scales before.
func (w groupedRow) small(u, halves, i int) *byte {
	return &w.scales[u*w.format.unitBytes+(2*halves+i)*bandRows+w.lane]
}

// A group's codes are packed as eight steps: step j holds columns 4j..4j+3, a
// byte each, column 4j lowest.
type steps [groupCols / 4]uint32

// word gives the place of a plane's 32-bit lane of group g.
func (w groupedRow) word(g, plane int) []byte {
	return w.codes[g*w.format.codeBytes+plane*planeBytes+w.lane*4:]
}

func (w groupedRow) put4(g int, s *steps) {
	for p := range 4 {
		binary.LittleEndian.PutUint32(w.word(g, p), s[p]&lowNibbles|s[p+4]&lowNibbles<<4)
	}
}

func (w groupedRow) put6(g int, s *steps) {
	w.put4(g, s)
	for h := range 2 {
		var pairs uint32
		for f, codes := range s[4*h : 4*h+4] {
			pairs |= codes >> 4 & lowPairs << (2 * f)
		}
		binary.LittleEndian.PutUint32(w.word(g, 4+h), pairs)
	}
}

func (w groupedRow) put8(g int, s *steps) {
	for j, codes := range s {
		binary.LittleEndian.PutUint32(w.word(g, j), codes)
	}
}

// Masks of four bytes.
const (
	lowNibbles = 0x0f0f0f0f
	lowPairs   = 0x03030303
)

// codesOf sets q to the codes of group g, their offset (8 or 32) taken off.
func (w groupedRow) codesOf(p Packing, g int, q *[groupCols]int8) {
	b := w.codes[g*w.format.codeBytes+w.lane*4:]
	switch p {
	case Q8:
		for k := range q {
			q[k] = int8(b[k/4*planeBytes+k%4])
		}
		return
	case Q6:
		high := b[nibbleBytes:]
		for k := range q {
			q[k] = int8(high[k/16*planeBytes+k%4]>>(k/4%4*2)&3<<4) - 32
		}
	case Q4:
		*q = [groupCols]int8{}
		for k := range q {
			q[k] = -8
		}
	case Q4M:
		*q = [groupCols]int8{}
	}
	for k := range groupCols / 2 {
		v := b[k/4*planeBytes+k%4]
		q[k] += int8(v & 15)
		q[k+16] += int8(v >> 4)
	}
}

// groupedRow sets dst to row r. Products of scales are exact in float32, so
// that each weight is rounded where the storage format's definition rounds it.
func (m *Matrix) groupedRow(dst []float32, r int) {
	w := m.groupedAt(r)
	var q [groupCols]int8
	for g := range len(dst) / groupCols {
		w.codesOf(m.Packing, g, &q)
		out := dst[g*groupCols:][:groupCols]
		u, i := g/w.format.unit, g%w.format.unit
		switch m.Packing {
		case Q4, Q8:
			d := w.halfAt(u, 0)
			for k := range out {
				out[k] = d * float32(q[k])
			}
		case Q4M:
			d := w.halfAt(u, 0) * float32(*w.small(u, 2, 2*i))
			least := w.halfAt(u, 1) * float32(*w.small(u, 2, 2*i+1))
			for k := range out {
				out[k] = d*float32(q[k]) - least
			}
		case Q6:
			for k := range out {
				d := w.halfAt(u, 0) * float32(int8(*w.small(u, 1, 2*i+k/16)))
				out[k] = d * float32(q[k])
			}
		}
	}
}
