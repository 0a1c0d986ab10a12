package kernels

import "fmt"

// Row sets dst[Cols] to row r of any packing, dequantised exactly as the
// storage format defines it: an embedding's look-up.
func (m *Matrix) Row(dst []float32, r int) {
	if r < 0 || r >= m.Rows || len(dst) < m.Cols {
		panic(fmt.Sprintf("kernels: row %d of a %dx%d matrix into %d values", r, m.Rows, m.Cols, len(dst)))
	}
	dst = dst[:m.Cols]
	switch {
	case m.Packing.Ternary():
		m.ternaryRow(dst, r)
	case m.Packing.grouped():
		m.groupedRow(dst, r)
	default:
		m.denseRow(dst, r)
	}
}

// ternaryRow sets dst to row r of an I1 or I2 matrix.
func (m *Matrix) ternaryRow(dst []float32, r int) {
	scale := m.Scale[0]
	if len(m.Scale) > 1 {
		scale = m.Scale[r]
	}
	values := [3]float32{-scale, 0, scale}
	g, base := tritsPerByte(m.Packing), byte(radix(m.Packing))
	blocks := ternaryBlocks(m.Cols, m.Packing)
	b := m.Data[r/stripRows*blocks*stripRows*blockBytes+r%stripRows*blockBytes:]
	for i := 0; len(dst) > 0; i++ {
		v := b[i/blockBytes*stripRows*blockBytes+i%blockBytes]
		n := min(g, len(dst))
		for k := range dst[:n] {
			dst[k] = values[v%base]
			v /= base
		}
		dst = dst[n:]
	}
}
