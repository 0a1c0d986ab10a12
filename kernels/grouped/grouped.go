// Package grouped packs and multiplies matrices of integer codes with scales along K.
package grouped

//go:generate go -C ../_gen run . -family grouped -pkg grouped -out ../grouped/asm_amd64.s -stubs ../grouped/asm_amd64.go
//go:generate go -C ../_gen run . -family grouped_dot -pkg grouped -out ../grouped/asm_dot_amd64.s -stubs ../grouped/asm_dot_amd64.go
//go:generate go -C ../_gen run . -family grouped_low -pkg grouped -out ../grouped/asm_low_amd64.s -stubs ../grouped/asm_low_amd64.go
//go:generate go -C ../_gen run . -family grouped_tables -pkg grouped -out ../grouped/asm_tables_amd64.s -stubs ../grouped/asm_tables_amd64.go
//go:generate go -C ../_gen run . -family grouped_gfni -pkg grouped -out ../grouped/asm_gfni_amd64.s -stubs ../grouped/asm_gfni_amd64.go
//go:generate go -C ../_gen run . -family grouped_halves -pkg grouped -out ../grouped/asm_halves_amd64.s -stubs ../grouped/asm_halves_amd64.go
//go:generate go -C ../_gen run . -family grouped_levels -pkg grouped -out ../grouped/asm_levels_amd64.s -stubs ../grouped/asm_levels_amd64.go
//go:generate go -C ../_gen run . -tables grouped -to ../grouped
//go:generate go -C ../_gen run . -header vex_amd64.h -to ../grouped
//go:generate go -C ../_gen run . -header neon_arm64.h -to ../grouped

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// format is a row of the table of grouped packings, which hold integer codes with
// scales along K. A band of 16 rows is its code groups (32 columns each) followed by
// its scale units:
//
//	         codes of a group                       scales of a unit
//	Q1G128   bits                                   each 128 columns: d f16[16]
//	Q2G64    pairs of bits                          each 64 columns: d f16[16]
//	Q2G128   pairs of bits                          each 128 columns: d f16[16]
//	Q4       low nibbles                            each 32 columns: d f16[16]
//	Q4M      low nibbles                            each 256 columns: d f16[16], dmin f16[16], 8 × {sc u8[16], m u8[16]}
//	Q41      low nibbles                            each 32 columns: d f16[16], m f16[16]
//	Q6       low nibbles, pairs of high bits        each 256 columns: d f16[16], 16 × sc i8[16]
//	Q8       bytes                                  each 32 columns: d f16[16]
//	FP4      low nibbles                            each 32 columns: d f16[16]
//	NL4      nibbles of halves                      each 32 columns: d f16[16]
//	NL4K     nibbles of halves                      each 256 columns: d f16[16], 8 × sc i8[16]
//	NL4S     nibbles of halves                      each 256 columns: d f16[16], 8 × sc i8[16]
//	NVFP4    nibbles of halves                      each 32 columns: 2 × e4m3[16], of one half and the other
//	NL3K     pairs of bits, bits of halves          each 256 columns: d f16[16], 16 × sc i8[16]
//
// and a weight is
//
//	Q1G128: d·(2·code-1)   Q2G64, Q2G128: d·(code-1)
//	Q4: d·(code-8)   Q4M: d·sc·code - dmin·m   Q41: d·code - m   Q6: d·sc·(code-32)   Q8: d·code   FP4: d·e2m1[code]
//	NL4: d·level[code]   NVFP4: sc·level[code]   NL4K, NL4S, NL3K: d·sc·level[code]
//
// Codes stand so that a 32-bit word holds four consecutive columns of a row:
// planes of [16 rows][4 bytes]. Word j of a group is columns 4j..4j+3.
//
//	bits           one plane: word j in bit j of each byte
//	pairs of bits  plane h of 2: word 4h+f in bits 2f, 2f+1
//	nibbles        plane p of 4: word p in the low half of each byte, p+4 in the high
//	bytes          plane j of 8: word j
//
// and of halves of a group, 16 columns, whose words are 4h..4h+3:
//
//	nibbles of halves  plane 2h+p of 4: word 4h+p in the low half of each byte, 4h+p+2 in the high
//	bits of halves     one plane: word 4h+f in bit 2-2h + (0, 1, 4, 5)[f] of each byte
type format struct {
	codeBytes int       // of a band's group
	unitBytes int       // of a band's scale unit
	unit      int       // groups in a scale unit
	offset    int8      // what a code of zero weight is; whole bytes have their sign themselves
	levels    *[16]int8 // what nibbles stand for; nil: themselves
	// scales gives the parts of group g's scales.
	scales func(r row, g int) scales
	limit  acts.Limit // of activations
	super  bool       // d multiplies the sum of a whole scale unit, not of each group
	halves bool       // codes lie in halves, whose sums meet their scales apart unless super; the matrix has levels
}

// scales says what a group's codes mean: weights are d·sc[half]·code - least,
// where half is 0 for the first 16 columns and 1 for the others.
type scales struct {
	d, least float32
	sc       [2]int32
}

const (
	planeBytes  = bands.Rows * 4
	pairBytes   = 2 * planeBytes
	nibbleBytes = 4 * planeBytes
	byteBytes   = 8 * planeBytes
	threeBytes  = 3 * planeBytes
	superGroups = 8 // groups of a superblock of 256 columns
)

// formats is the table, by packing.
var formats = [...]format{
	matrix.Q4:  {codeBytes: nibbleBytes, unitBytes: 2 * bands.Rows, unit: 1, offset: 8, scales: scalesOfD},
	matrix.Q4M: {codeBytes: nibbleBytes, unitBytes: 4*bands.Rows + superGroups*2*bands.Rows, unit: superGroups, scales: scalesQ4M},
	matrix.Q41: {codeBytes: nibbleBytes, unitBytes: 4 * bands.Rows, unit: 1, scales: scalesQ41},
	matrix.Q6:  {codeBytes: nibbleBytes + 2*planeBytes, unitBytes: 2*bands.Rows + 2*superGroups*bands.Rows, unit: superGroups, offset: 32, scales: scalesQ6, limit: acts.Limited, super: true},
	matrix.Q8:  {codeBytes: byteBytes, unitBytes: 2 * bands.Rows, unit: 1, scales: scalesOfD},

	matrix.FP4: {codeBytes: nibbleBytes, unitBytes: 2 * bands.Rows, unit: 1, levels: &e2m1, scales: scalesOfD},

	matrix.NL4:   {codeBytes: nibbleBytes, unitBytes: 2 * bands.Rows, unit: 1, halves: true, scales: scalesOfD},
	matrix.NL4K:  {codeBytes: nibbleBytes, unitBytes: (2 + superGroups) * bands.Rows, unit: superGroups, halves: true, scales: scalesNL4K},
	matrix.NVFP4: {codeBytes: nibbleBytes, unitBytes: 2 * bands.Rows, unit: 1, halves: true, scales: scalesNVFP4},
	matrix.NL4S:  {codeBytes: nibbleBytes, unitBytes: (2 + superGroups) * bands.Rows, unit: superGroups, halves: true, scales: scalesNL4K, limit: acts.Limited, super: true},
	matrix.NL3K:  {codeBytes: threeBytes, unitBytes: (2 + 2*superGroups) * bands.Rows, unit: superGroups, halves: true, scales: scalesQ6, limit: acts.Tight, super: true},

	matrix.Q1G128: {codeBytes: planeBytes, unitBytes: 2 * bands.Rows, unit: 4, scales: scalesOfUnit, super: true},
	matrix.Q2G64:  {codeBytes: pairBytes, unitBytes: 2 * bands.Rows, unit: 2, offset: 1, scales: scalesOfUnit, super: true},
	matrix.Q2G128: {codeBytes: pairBytes, unitBytes: 2 * bands.Rows, unit: 4, offset: 1, scales: scalesOfUnit, super: true},
}

// Limit returns the limit of the activations that p is multiplied with.
func Limit(p matrix.Packing) acts.Limit { return formats[p].limit }

// UnitCols returns the number of columns that a packing's rows are multiples of.
func UnitCols(p matrix.Packing) int { return formats[p].unit * acts.GroupCols }

// BandBytes returns the size of a band of cols columns.
func BandBytes(p matrix.Packing, cols int) int { return formats[p].bandBytes(cols) }

// bandAlign divides the size of a band.
const bandAlign = 64

// bandBytes returns the size of a band of cols columns.
func (f *format) bandBytes(cols int) int {
	groups := cols / acts.GroupCols
	return cpu.RoundUp(groups*f.codeBytes+groups/f.unit*f.unitBytes, bandAlign)
}

// bandOf gives the codes and the scales of band s of m.
func bandOf(m *matrix.Matrix, s int) (codes, scales []byte) {
	f := &formats[m.Packing]
	size, n := f.bandBytes(m.Cols), m.Cols/acts.GroupCols*f.codeBytes
	b := m.Data[s*size : (s+1)*size]
	return b[:n], b[n:]
}

// newMatrix allocates a matrix and has pack fill each scale unit u of every row r. The
// rows of a band go unit by unit, so that what they share stays in L1.
func newMatrix(p matrix.Packing, rows, cols int, pack func(w *row, r, u int)) *matrix.Matrix {
	return newLevelled(p, nil, rows, cols, pack)
}

// newLevelled does as newMatrix, with levels.
func newLevelled(p matrix.Packing, levels *matrix.Levels, rows, cols int, pack func(w *row, r, u int)) *matrix.Matrix {
	m := &matrix.Matrix{Rows: rows, Cols: cols, Packing: p, Levels: levels}
	size := formats[p].bandBytes(cols)
	m.Data = matrix.Data(bands.Count(rows) * size)
	matrix.Parallel(bands.Count(rows), func(s int) {
		first := s * bands.Rows
		if whole := m.Data[s*size : (s+1)*size]; rows-first < bands.Rows {
			clear(whole)
		} else {
			clear(whole[max(0, len(whole)-bandAlign):]) // what fills it up
		}
		band, super := make([]row, min(bands.Rows, rows-first)), new(Superblock)
		for i := range band {
			band[i] = rowOf(m, first+i)
			band[i].super = super
		}
		for u := range cols / UnitCols(p) {
			for i := range band {
				pack(&band[i], first+i, u)
			}
		}
	})
	return m
}

// row is one row of a grouped matrix.
type row struct {
	format        *format
	levels        *matrix.Levels
	inBand        int // which row of the band
	codes, scales []byte
	super         *Superblock // of the band, for PackSuperblocks to use
}

// rowOf returns row r of m.
func rowOf(m *matrix.Matrix, r int) row {
	codes, scales := bandOf(m, r/bands.Rows)
	return row{&formats[m.Packing], m.Levels, r % bands.Rows, codes, scales, nil}
}

// half gives the place of f16 scale i (each 16 rows long) of unit u.
func (w *row) half(u, i int) []byte {
	return w.scales[u*w.format.unitBytes+i*2*bands.Rows+2*w.inBand:]
}

// putHalf sets f16 scale i of unit u. An infinite one becomes NaN: some kernels take
// d·c off where others do not, and all are to give the same.
func (w *row) putHalf(u, i int, raw []byte) {
	bits := binary.LittleEndian.Uint16(raw)
	if bits&0x7fff == 0x7c00 {
		bits |= 0x0200
	}
	binary.LittleEndian.PutUint16(w.half(u, i), bits)
}

func (w *row) halfAt(u, i int) float32 {
	d := vector.FromF16(binary.LittleEndian.Uint16(w.half(u, i)))
	if w.levels != nil {
		d *= w.levels.Scale
	}
	return d
}

// small gives byte scale i of superblock u; halves is the number of f16 scales before.
func (w *row) small(u, halves, i int) *byte { return &w.smalls(u, halves)[i*bands.Rows] }

// smalls gives what holds byte scale i of superblock u at i·bands.Rows.
func (w *row) smalls(u, halves int) []byte {
	return w.scales[u*w.format.unitBytes+2*halves*bands.Rows+w.inBand:]
}

// planes gives what begins with the row's word in the first plane of group g. The routines below write
// there the codes of a group, two words a number: a holds columns 0..7, a byte each, column 0 lowest, b 8..15,
// c and d those above. That they are no array keeps them in registers.
func (w *row) planes(g int) []byte { return w.codes[g*w.format.codeBytes+w.inBand*4:] }

// putWords writes two words into neighbouring planes.
func putWords(planes []byte, both uint64) {
	b := (*[planeBytes + 4]byte)(planes)
	binary.LittleEndian.PutUint32(b[:], uint32(both))
	binary.LittleEndian.PutUint32(b[planeBytes:], uint32(both>>32))
}

func put4(planes []byte, a, b, c, d uint64) {
	to := (*[3*planeBytes + 4]byte)(planes)
	putWords(to[:], a&lowNibbles|c&lowNibbles<<4)
	putWords(to[2*planeBytes:], b&lowNibbles|d&lowNibbles<<4)
}

// put4x4 writes four bits of 32 columns in 16 bytes: column k in the low half of byte k,
// column k+16 in the high.
func put4x4(planes, b []byte) {
	low, high := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	put4(planes, low, high, low>>4, high>>4)
}

func put6(planes []byte, a, b, c, d uint64) {
	put4(planes, a, b, c, d)
	putWords(planes[nibbleBytes:], highPairs(a, b)|highPairs(c, d)<<32)
}

// highPairs joins bits 4 and 5 of the codes of four words to a word.
func highPairs(a, b uint64) uint64 {
	return uint64(besides(a>>4&lowPairs|b&(lowPairs<<4), 2)) // words 0 and 2, beside them 1 and 3
}

// besides has the upper word stand so many bits above the lower one, in one word.
func besides(both uint64, bits int) uint32 { return uint32(both) | uint32(both>>32)<<bits }

func put8(planes []byte, a, b, c, d uint64) {
	to := (*[7*planeBytes + 4]byte)(planes)
	putWords(to[:], a)
	putWords(to[2*planeBytes:], b)
	putWords(to[4*planeBytes:], c)
	putWords(to[6*planeBytes:], d)
}

// Masks of eight bytes.
const (
	lowNibbles = 0x0f0f0f0f0f0f0f0f
	lowPairs   = 0x0303030303030303
)

// codesOf sets q to the codes of group g, their offset taken off.
func (w *row) codesOf(g int, q *[acts.GroupCols]int8) {
	f := w.format
	b := w.codes[g*f.codeBytes+w.inBand*4:]
	if f.halves {
		w.levelsOf(g, q)
		return
	}
	if f.codeBytes == byteBytes {
		for k := range q {
			q[k] = int8(b[k/4*planeBytes+k%4])
		}
		return
	}
	for k := range q {
		q[k] = -f.offset
	}
	switch f.codeBytes {
	case planeBytes:
		for k := range q {
			q[k] = int8(b[k%4]>>(k/4)&1)*2 - 1
		}
		return
	case pairBytes:
		for k := range q {
			q[k] += int8(b[k/16*planeBytes+k%4] >> (k / 4 % 4 * 2) & 3)
		}
		return
	}
	if f.codeBytes > nibbleBytes {
		high := b[nibbleBytes:]
		for k := range q {
			q[k] += int8(high[k/16*planeBytes+k%4] >> (k / 4 % 4 * 2) & 3 << 4)
		}
	}
	for k := range acts.GroupCols / 2 {
		v := b[k/4*planeBytes+k%4]
		q[k] += int8(v & 15)
		q[k+16] += int8(v >> 4)
	}
	for k := 0; f.levels != nil && k < len(q); k++ {
		q[k] = f.levels[q[k]]
	}
}

// scalesOfD: one float16 a group is all.
func scalesOfD(w row, g int) scales { return scales{d: w.halfAt(g, 0), sc: [2]int32{1, 1}} }

// scalesOfUnit: one float16 a unit is all.
func scalesOfUnit(w row, g int) scales {
	return scales{d: w.halfAt(g/w.format.unit, 0), sc: [2]int32{1, 1}}
}

func scalesQ4M(w row, g int) scales {
	u, i := g/superGroups, g%superGroups
	sc := int32(*w.small(u, 2, 2*i))
	return scales{w.halfAt(u, 0), w.halfAt(u, 1) * float32(*w.small(u, 2, 2*i+1)), [2]int32{sc, sc}}
}

func scalesQ41(w row, g int) scales {
	return scales{w.halfAt(g, 0), w.halfAt(g, 1), [2]int32{1, 1}}
}

func scalesQ6(w row, g int) scales {
	u, i := g/superGroups, g%superGroups
	return scales{d: w.halfAt(u, 0), sc: [2]int32{int32(int8(*w.small(u, 1, 2*i))), int32(int8(*w.small(u, 1, 2*i+1)))}}
}

// Codes sets codes[Cols] to the codes of row r of m, what a code of zero weight is
// taken off, and scale and least to the parts of each 32 columns: a weight is
// scale·code - least. m is of any packing but Q6, NL3K and NVFP4, which have two scales there.
func Codes(codes []int8, scale, least []float32, m *matrix.Matrix, r int) {
	w := rowOf(m, r)
	for g := range m.Cols / acts.GroupCols {
		w.codesOf(g, (*[acts.GroupCols]int8)(codes[g*acts.GroupCols:]))
		s := w.format.scales(w, g)
		scale[g], least[g] = s.d*float32(s.sc[0]), s.least
	}
}

// Row sets dst to row r of m. Products of scales are exact in float32, so
// that each weight is rounded where the storage format's definition rounds it.
func Row(dst []float32, m *matrix.Matrix, r int) {
	w := rowOf(m, r)
	var q [acts.GroupCols]int8
	for g := range len(dst) / acts.GroupCols {
		w.codesOf(g, &q)
		s := w.format.scales(w, g)
		d := [2]float32{s.d * float32(s.sc[0]), s.d * float32(s.sc[1])}
		for k, out := 0, dst[g*acts.GroupCols:][:acts.GroupCols]; k < acts.GroupCols; k++ {
			out[k] = d[k/16]*float32(q[k]) - s.least
		}
	}
}
