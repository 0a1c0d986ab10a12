package kernels

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// Dense packings: bands of 16 rows, [band][K][16] values, little endian.

// PackF32 packs row-major float32 weights w[rows][cols].
func PackF32(rows, cols int, w []float32) (*Matrix, error) {
	if err := CheckShape("F32", rows, cols, 1, 4, 4*len(w)); err != nil {
		return nil, err
	}
	m := newDense(F32, rows, cols)
	Parallel(BandsOf(rows), func(s int) {
		out := m.Data[s*bandRows*cols*4:]
		for i := range min(bandRows, rows-s*bandRows) {
			for k, v := range w[(s*bandRows+i)*cols:][:cols] {
				binary.LittleEndian.PutUint32(out[(k*bandRows+i)*4:], math.Float32bits(v))
			}
		}
	})
	return m, nil
}

// PackF16 packs row-major IEEE binary16 weights, raw[rows][cols][2] little endian.
func PackF16(rows, cols int, raw []byte) (*Matrix, error) { return packHalf(F16, rows, cols, raw) }

// PackBF16 packs row-major bfloat16 weights, raw[rows][cols][2] little endian.
func PackBF16(rows, cols int, raw []byte) (*Matrix, error) { return packHalf(BF16, rows, cols, raw) }

// packCols is the number of columns whose place in a band stays in L1 while its
// rows are spread over it.
const packCols = 256

func packHalf(p Packing, rows, cols int, raw []byte) (*Matrix, error) {
	if err := CheckShape(p.String(), rows, cols, 1, 2, len(raw)); err != nil {
		return nil, err
	}
	m := newDense(p, rows, cols)
	Parallel(BandsOf(rows), func(s int) {
		out := m.Data[s*bandRows*cols*2:]
		for k := 0; k < cols; k += packCols {
			n := min(packCols, cols-k)
			for i := range min(bandRows, rows-s*bandRows) {
				row := raw[((s*bandRows+i)*cols+k)*2:][:2*n]
				for c := range n {
					binary.LittleEndian.PutUint16(out[((k+c)*bandRows+i)*2:], binary.LittleEndian.Uint16(row[2*c:]))
				}
			}
		}
	})
	return m, nil
}

func newDense(p Packing, rows, cols int) *Matrix {
	return &Matrix{Rows: rows, Cols: cols, Packing: p, Data: cpu.Aligned[byte](BandsOf(rows) * BandBytes(p, cols))}
}

// BandBytes is the size of a band of cols columns.
func BandBytes(p Packing, cols int) int { return bandRows * cols * weightBytes(p) }

// weightBytes is the size of a weight.
func weightBytes(p Packing) int {
	if p == F32 {
		return 4
	}
	return 2
}

// DenseRow copies row r of m to dst as float32.
func DenseRow(dst []float32, m *Matrix, r int) {
	size := weightBytes(m.Packing)
	w := m.Data[(r/bandRows*bandRows*m.Cols+r%bandRows)*size:]
	for k := range dst {
		dst[k] = weightAt(m.Packing, w[k*bandRows*size:])
	}
}

func weightAt(p Packing, b []byte) float32 {
	switch p {
	case F32:
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	case F16:
		return vector.FromF16(binary.LittleEndian.Uint16(b))
	}
	return vector.FromBF16(binary.LittleEndian.Uint16(b))
}

// denseKBlock bounds the columns summed in one chain of float32 additions:
// blocks of it are summed apart, which keeps the error near that of √256
// roundings instead of √K, and a band's block of weights within L1.
const denseKBlock = 256

// denseKernel multiplies dense bands with float32 activations.
type denseKernel struct {
	w    *Matrix
	tile denseTiles
}

// NewDenseKernel is what multiplies w, with the kernels of the instruction set in use.
func NewDenseKernel(w *Matrix) Kernel {
	return &denseKernel{w: w, tile: denseTilesFor(cpu.Active(), w.Packing)}
}

// BandBytes is the size of a band.
func (d *denseKernel) BandBytes() int { return BandBytes(d.w.Packing, d.w.Cols) }

// Prepare has nothing to do: activations are read as they are.
func (d *denseKernel) Prepare(*pool.Pool, *Rows) {}

// KBlock is the number of columns summed in one chain.
func (d *denseKernel) KBlock() int { return denseKBlock }

// addGeneric is Add in portable Go. The weights of a few columns are widened
// once for all tokens.
func (d *denseKernel) addGeneric(y []float32, ld, s, n int, x *Rows, t, tEnd, kLo, kHi int) {
	const chunk, most = 32, 16 // columns, tokens
	var w [chunk][bandRows]float32
	size := weightBytes(d.w.Packing)
	for b := range n {
		var sums [most][bandRows]float32
		for lo := t; lo < tEnd; lo += len(sums) {
			hi := min(lo+len(sums), tEnd)
			clear(sums[:hi-lo])
			for k := kLo; k < kHi; k += chunk {
				kEnd := min(k+chunk, kHi)
				widen(d.w.Packing, w[:kEnd-k], d.w.Data[((s+b)*d.w.Cols+k)*bandRows*size:])
				for i := lo; i < hi; i++ {
					addColumns(&sums[i-lo], w[:kEnd-k], x.Row(i)[k:kEnd])
				}
			}
			for i := lo; i < hi; i++ {
				out := y[b*bandRows+(i-t)*ld:][:bandRows]
				for r, v := range sums[i-lo] {
					out[r] += v
				}
			}
		}
	}
}

// widen sets w to the float32 values of columns stored at b.
func widen(p Packing, w [][bandRows]float32, b []byte) {
	size := weightBytes(p)
	for k := range w {
		col := b[k*bandRows*size:][:bandRows*size]
		for r := range w[k] {
			w[k][r] = weightAt(p, col[r*size:])
		}
	}
}

// addColumns adds x[k]·w[k] to the sums of a band's rows, eight at a time so
// that they stay in registers.
func addColumns(sum *[bandRows]float32, w [][bandRows]float32, x []float32) {
	x = x[:len(w)]
	for r := 0; r < bandRows; r += 8 {
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
