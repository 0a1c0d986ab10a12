package ref

import "github.com/lutra-lm/lutra/hexagon/layout"

// Precompute computes OpPrecompute: tables has 4·len(x) numbers, sums len(x)/32.
func Precompute(tables []int16, sums []int32, x []int16) {
	for k := 0; k < len(x); k += layout.Tile {
		half := x[k:][:layout.Tile]
		for quad := range 8 {
			for n := range 16 {
				var sum int16
				for i := range 4 {
					if n>>i&1 == 1 {
						sum += half[layout.QuadColumn(quad, i)]
					}
				}
				tables[k/layout.TableCols*1024+layout.TableIndex(k/layout.Tile%8, quad, n)] = sum
			}
		}
		sums[k/layout.Tile] = 0
		for _, v := range half {
			sums[k/layout.Tile] += int32(v)
		}
	}
}

// Matrix is the operands of OpGEMV and OpDequant that are a matrix's: K columns, and
// the rows that Codes holds.
type Matrix struct {
	Codes           []byte
	Scales, Offsets []int16 // nil: none
	K, Bits, Group  int
}

// strip returns the codes of a strip.
func (w *Matrix) strip(strip int) []byte {
	size := w.K / layout.Block * layout.BlockBytes(w.Bits)
	return w.Codes[strip*size:][:size]
}

// scale returns the index of a row's scale.
func (w *Matrix) scale(m, group int) int {
	return (m/layout.Strip*(w.K/w.Group)+group)*layout.Strip + layout.ScaleIndex(m%layout.Strip)
}

// GEMV computes OpGEMV.
func GEMV(y []int32, w *Matrix, tables []int16, sums []int32, a, b int32) {
	for m := range y {
		strip := w.strip(m / layout.Strip)
		y[m] = 0
		for g := range w.K / w.Group {
			var t, x int32
			for k := g * w.Group; k < (g+1)*w.Group; k += layout.Tile {
				block := strip[k/layout.Block*layout.BlockBytes(w.Bits):]
				table := tables[k/layout.TableCols*1024:]
				for quad := range 8 {
					for plane := range w.Bits {
						n := layout.Nibble(block, m%layout.Strip, plane, k/layout.Tile%2, quad, w.Bits)
						t += int32(table[layout.TableIndex(k/layout.Tile%8, quad, n)]) << plane
					}
				}
				x += sums[k/layout.Tile]
			}
			sum := a*t - b*x
			if w.Group == w.K {
				y[m] = sum
				continue
			}
			y[m] += int32((int64(sum)*int64(w.Scales[w.scale(m, g)]) + 1<<14) >> 15)
			if w.Offsets != nil {
				y[m] += int32((int64(x<<3)*int64(w.Offsets[w.scale(m, g)]) + 1<<14) >> 15)
			}
		}
	}
}
