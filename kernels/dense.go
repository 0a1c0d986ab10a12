package kernels

import (
	"encoding/binary"
	"math"
)

// Dense packings: bands of 16 rows, [band][K][16] values, little endian.

// PackF32 packs row-major float32 weights w[rows][cols].
func PackF32(rows, cols int, w []float32) (*Matrix, error) {
	if err := checkShape("F32", rows, cols, 1, 4, 4*len(w)); err != nil {
		return nil, err
	}
	m := newDense(F32, rows, cols)
	packBands(m.bands(), func(s int) {
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

func packHalf(p Packing, rows, cols int, raw []byte) (*Matrix, error) {
	if err := checkShape(p.String(), rows, cols, 1, 2, len(raw)); err != nil {
		return nil, err
	}
	m := newDense(p, rows, cols)
	packBands(m.bands(), func(s int) {
		out := m.Data[s*bandRows*cols*2:]
		for i := range min(bandRows, rows-s*bandRows) {
			row := raw[(s*bandRows+i)*cols*2:][:cols*2]
			for k := range cols {
				o := (k*bandRows + i) * 2
				out[o], out[o+1] = row[2*k], row[2*k+1]
			}
		}
	})
	return m, nil
}

func newDense(p Packing, rows, cols int) *Matrix {
	m := &Matrix{Rows: rows, Cols: cols, Packing: p}
	m.Data = aligned[byte](m.bands() * m.bandBytes())
	return m
}

// denseBytes is the size of a weight of a dense packing.
func (p Packing) denseBytes() int {
	if p == F32 {
		return 4
	}
	return 2
}

// denseRow copies row r to dst as float32.
func (m *Matrix) denseRow(dst []float32, r int) {
	size := m.Packing.denseBytes()
	w := m.Data[(r/bandRows*bandRows*m.Cols+r%bandRows)*size:]
	for k := range dst {
		dst[k] = m.Packing.denseAt(w[k*bandRows*size:])
	}
}

func (p Packing) denseAt(b []byte) float32 {
	switch p {
	case F32:
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	case F16:
		return f16ToF32(binary.LittleEndian.Uint16(b))
	}
	return bf16ToF32(binary.LittleEndian.Uint16(b))
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

func newDenseKernel(w *Matrix) *denseKernel {
	return &denseKernel{w: w, tile: denseTilesFor(active, w.Packing)}
}

func (d *denseKernel) prepare(*Pool, *Acts) {}
func (d *denseKernel) kBlock() int          { return denseKBlock }

func (d *denseKernel) add(y []float32, ld, s, n int, x *Acts, t, tEnd, kLo, kHi int) {
	size := d.w.Packing.denseBytes()
	for ; n > 0; n-- {
		w := d.w.Data[(s*d.w.Cols+kLo)*bandRows*size:]
		for i := t; i < tEnd; i++ {
			d.addGeneric(y[(i-t)*ld:], w[:(kHi-kLo)*bandRows*size], x.Row(i)[kLo:kHi])
		}
		s++
		y = y[min(bandRows, len(y)):]
	}
}

// addGeneric adds the products of one block of a band and one token.
func (d *denseKernel) addGeneric(y []float32, w []byte, x []float32) {
	var sum [bandRows]float32
	switch d.w.Packing {
	case F32:
		for k, v := range x {
			row := (*[bandRows * 4]byte)(w[k*bandRows*4:])
			for i := range sum {
				sum[i] += v * math.Float32frombits(binary.LittleEndian.Uint32(row[i*4:]))
			}
		}
	case F16:
		for k, v := range x {
			row := (*[bandRows * 2]byte)(w[k*bandRows*2:])
			for i := range sum {
				sum[i] += v * f16ToF32(binary.LittleEndian.Uint16(row[i*2:]))
			}
		}
	case BF16:
		for k, v := range x {
			row := (*[bandRows * 2]byte)(w[k*bandRows*2:])
			for i := range sum {
				sum[i] += v * bf16ToF32(binary.LittleEndian.Uint16(row[i*2:]))
			}
		}
	}
	for i, v := range sum {
		y[i] += v
	}
}
