// Package dense packs and multiplies matrices of floating-point weights.
package dense

//go:generate go -C ../_gen run . -family dense -pkg dense -out ../dense/asm_amd64.s -stubs ../dense/asm_amd64.go
//go:generate go -C ../_gen run . -tables dense -to ../dense
//go:generate go -C ../_gen run . -header neon_arm64.h -to ../dense

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// Dense packings: bands of 16 rows, [band][K][16] values, little endian.

// PackF32 packs row-major float32 weights w[rows][cols].
func PackF32(rows, cols int, w []float32) (*matrix.Matrix, error) {
	if err := matrix.Check("F32", rows, cols, 1, 4, 4*len(w)); err != nil {
		return nil, err
	}
	m := newMatrix(matrix.F32, rows, cols)
	matrix.Parallel(bands.Count(rows), func(s int) {
		out := m.Data[s*bands.Rows*cols*4:]
		for i := range min(bands.Rows, rows-s*bands.Rows) {
			for k, v := range w[(s*bands.Rows+i)*cols:][:cols] {
				binary.LittleEndian.PutUint32(out[(k*bands.Rows+i)*4:], math.Float32bits(v))
			}
		}
	})
	return m, nil
}

// PackF16 packs row-major IEEE binary16 weights, raw[rows][cols][2] little endian.
func PackF16(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	return packHalf(matrix.F16, rows, cols, raw)
}

// PackBF16 packs row-major bfloat16 weights, raw[rows][cols][2] little endian.
func PackBF16(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	return packHalf(matrix.BF16, rows, cols, raw)
}

// packCols is the number of columns whose place in a band stays in L1 while its
// rows are spread over it.
const packCols = 256

func packHalf(p matrix.Packing, rows, cols int, raw []byte) (*matrix.Matrix, error) {
	if err := matrix.Check(p.String(), rows, cols, 1, 2, len(raw)); err != nil {
		return nil, err
	}
	m := newMatrix(p, rows, cols)
	matrix.Parallel(bands.Count(rows), func(s int) {
		out := m.Data[s*bands.Rows*cols*2:]
		for k := 0; k < cols; k += packCols {
			n := min(packCols, cols-k)
			i, from := 0, raw[(s*bands.Rows*cols+k)*2:]
			for ; i+4 <= min(bands.Rows, rows-s*bands.Rows); i += 4 {
				spreadHalves(out[(k*bands.Rows+i)*2:], from[i*cols*2:], cols, n)
			}
			for ; i < min(bands.Rows, rows-s*bands.Rows); i++ {
				for c := range n {
					binary.LittleEndian.PutUint16(out[((k+c)*bands.Rows+i)*2:], binary.LittleEndian.Uint16(from[(i*cols+c)*2:]))
				}
			}
		}
	})
	return m, nil
}

// spreadHalves writes n columns of four rows of 16-bit numbers, which are cols numbers apart,
// into a band, four by four: it transposes them in registers.
func spreadHalves(band, rows []byte, cols, n int) {
	const even = 0x0000ffff0000ffff
	r0, r1, r2, r3 := rows, rows[2*cols:], rows[4*cols:], rows[6*cols:]
	c := 0
	for ; c+4 <= n; c += 4 {
		a, b := binary.LittleEndian.Uint64(r0[2*c:]), binary.LittleEndian.Uint64(r1[2*c:])
		p, q := a&even|b&even<<16, a>>16&even|b&^even // columns 0 and 2, 1 and 3
		a, b = binary.LittleEndian.Uint64(r2[2*c:]), binary.LittleEndian.Uint64(r3[2*c:])
		r, s := a&even|b&even<<16, a>>16&even|b&^even
		out := (*[3*2*bands.Rows + 8]byte)(band[c*2*bands.Rows:])
		binary.LittleEndian.PutUint64(out[0:], p&0xffffffff|r<<32)
		binary.LittleEndian.PutUint64(out[2*bands.Rows:], q&0xffffffff|s<<32)
		binary.LittleEndian.PutUint64(out[4*bands.Rows:], p>>32|r>>32<<32)
		binary.LittleEndian.PutUint64(out[6*bands.Rows:], q>>32|s>>32<<32)
	}
	for ; c < n; c++ {
		for i, row := range [...][]byte{r0, r1, r2, r3} {
			binary.LittleEndian.PutUint16(band[(c*bands.Rows+i)*2:], binary.LittleEndian.Uint16(row[2*c:]))
		}
	}
}

func newMatrix(p matrix.Packing, rows, cols int) *matrix.Matrix {
	size := BandBytes(p, cols)
	m := &matrix.Matrix{Rows: rows, Cols: cols, Packing: p, Data: matrix.Data(bands.Count(rows) * size)}
	if rows%bands.Rows != 0 {
		clear(m.Data[rows/bands.Rows*size:])
	}
	return m
}

// BandBytes returns the size of a band of cols columns.
func BandBytes(p matrix.Packing, cols int) int { return bands.Rows * cols * weightBytes(p) }

// weightBytes returns the size of a weight.
func weightBytes(p matrix.Packing) int {
	if p == matrix.F32 {
		return 4
	}
	return 2
}

// Row copies row r of m to dst as float32.
func Row(dst []float32, m *matrix.Matrix, r int) {
	size := weightBytes(m.Packing)
	w := m.Data[(r/bands.Rows*bands.Rows*m.Cols+r%bands.Rows)*size:]
	for k := range dst {
		dst[k] = weightAt(m.Packing, w[k*bands.Rows*size:])
	}
}

func weightAt(p matrix.Packing, b []byte) float32 {
	switch p {
	case matrix.F32:
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	case matrix.F16:
		return vector.FromF16(binary.LittleEndian.Uint16(b))
	}
	return vector.FromBF16(binary.LittleEndian.Uint16(b))
}

// kBlock bounds the columns summed in one chain of float32 additions.
// Blocks are summed apart, which keeps the error near √256 roundings instead
// of √K, and a band's block of weights within L1.
const kBlock = 256

// kernel multiplies dense bands with float32 activations.
type kernel struct {
	w    *matrix.Matrix
	tile tileSet
}

// NewKernel returns the kernel that multiplies w on the instruction set in use.
func NewKernel(w *matrix.Matrix) bands.Kernel {
	return &kernel{w: w, tile: tilesFor(cpu.Active(), w.Packing)}
}

// BandBytes returns the size of a band.
func (d *kernel) BandBytes() int { return BandBytes(d.w.Packing, d.w.Cols) }

// Prepare has nothing to do but for rows that were gathered: activations are read
// as they are.
func (d *kernel) Prepare(p *pool.Pool, x *acts.Rows) { x.MakeRows(p) }

// KBlock returns the number of columns summed in one chain.
func (d *kernel) KBlock() int { return kBlock }

// TileTokens returns the number of tokens that stay in L2.
func (d *kernel) TileTokens() int { return bands.MostTileTokens }

// addGeneric is Add in portable Go. The weights of a few columns are widened
// once for all tokens.
func (d *kernel) addGeneric(y []float32, ld, s, n int, x *acts.Rows, t, tEnd, kLo, kHi int) {
	const chunk, most = 32, 16 // columns, tokens
	var w [chunk][bands.Rows]float32
	size := weightBytes(d.w.Packing)
	for b := range n {
		var sums [most][bands.Rows]float32
		for lo := t; lo < tEnd; lo += len(sums) {
			hi := min(lo+len(sums), tEnd)
			clear(sums[:hi-lo])
			for k := kLo; k < kHi; k += chunk {
				kEnd := min(k+chunk, kHi)
				widen(d.w.Packing, w[:kEnd-k], d.w.Data[((s+b)*d.w.Cols+k)*bands.Rows*size:])
				for i := lo; i < hi; i++ {
					addColumns(&sums[i-lo], w[:kEnd-k], x.Row(i)[k:kEnd])
				}
			}
			for i := lo; i < hi; i++ {
				out := y[b*bands.Rows+(i-t)*ld:][:bands.Rows]
				for r, v := range sums[i-lo] {
					out[r] += v
				}
			}
		}
	}
}

// widen sets w to the float32 values of columns stored at b.
func widen(p matrix.Packing, w [][bands.Rows]float32, b []byte) {
	size := weightBytes(p)
	for k := range w {
		col := b[k*bands.Rows*size:][:bands.Rows*size]
		for r := range w[k] {
			w[k][r] = weightAt(p, col[r*size:])
		}
	}
}

// addColumns adds x[k]·w[k] to the sums of a band's rows, eight at a time so
// that they stay in registers.
func addColumns(sum *[bands.Rows]float32, w [][bands.Rows]float32, x []float32) {
	x = x[:len(w)]
	for r := 0; r < bands.Rows; r += 8 {
		s := (*[8]float32)(sum[r:])
		s0, s1, s2, s3, s4, s5, s6, s7 := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
		for k := range w {
			v, c := x[k], (*[8]float32)(w[k][r:])
			s0 += v * c[0]
			s1 += v * c[1]
			s2 += v * c[2]
			s3 += v * c[3]
			s4 += v * c[4]
			s5 += v * c[5]
			s6 += v * c[6]
			s7 += v * c[7]
		}
		*s = [8]float32{s0, s1, s2, s3, s4, s5, s6, s7}
	}
}
