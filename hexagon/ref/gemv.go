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

// PrecomputeBytes computes OpPrecompute of form 1: pairs of bytes has len(x), sums len(x)/32.
func PrecomputeBytes(pairs []int16, sums []int32, x []int16) {
	for k := 0; k < len(x); k += 4 {
		a, b, c, d := x[k], x[k+1], x[k+2], x[k+3]
		pairs[k], pairs[k+1] = a&255|b<<8, c&255|d<<8
		pairs[k+2], pairs[k+3] = a>>8&255|b&^255, c>>8&255|d&^255
		if k%layout.Tile == 0 {
			sums[k/layout.Tile] = 0
		}
		sums[k/layout.Tile] += int32(a) + int32(b) + int32(c) + int32(d)
	}
}

// Activation returns activation k of those pairs of bytes.
func Activation(pairs []int16, k int) int32 {
	of := k/4*4 + k%4/2
	low, high := pairs[of], pairs[of+2]
	if k%2 == 1 {
		return int32(low>>8&255) + int32(high>>8)<<8
	}
	return int32(low&255) + int32(int8(high))<<8
}

// Matrix is the operands of OpGEMV and OpDequant that are a matrix's: K columns, and
// the rows that Codes holds.
type Matrix struct {
	Codes           []byte
	Scales, Offsets []int16 // nil: none
	K, Bits, Group  int
	InBytes         bool   // codes stand in bytes: codes of 8 bits, and of 4 with values
	Values          []byte // 16, less 128; nil: codes are numbers
}

// code returns a code of a matrix in bytes.
func (w *Matrix) code(strip []byte, row, k int) int {
	return int(layout.ByteCode(strip[k/layout.Block*layout.BlockBytes(w.Bits):], row, k%layout.Block, w.Bits))
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

// GEMV computes OpGEMV; tables of a matrix in bytes are pairs of bytes.
func GEMV(y []int32, w *Matrix, tables []int16, sums []int32, a, b int32) {
	if w.InBytes {
		gemvBytes(y, w, tables, sums)
		return
	}
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
			y[m] += w.scaled(m, g, sum, x)
		}
	}
}

// scaled returns what a group of row m adds: its sum times its scale, and the sum x of
// activations times its offset.
func (w *Matrix) scaled(m, g int, sum, x int32) int32 {
	y := int32((int64(sum)*int64(w.Scales[w.scale(m, g)]) + 1<<14) >> 15)
	if w.Offsets != nil {
		y += int32((int64(x<<3)*int64(w.Offsets[w.scale(m, g)]) + 1<<14) >> 15)
	}
	return y
}

func gemvBytes(y []int32, w *Matrix, pairs []int16, sums []int32) {
	for m := range y {
		strip := w.strip(m / layout.Strip)
		y[m] = 0
		for g := range w.K / w.Group {
			var t, x int32
			for k := g * w.Group; k < (g+1)*w.Group; k++ {
				q := w.code(strip, m%layout.Strip, k)
				if w.Values != nil {
					q = int(w.Values[q])
				}
				t += int32(q) * Activation(pairs, k)
			}
			for _, s := range sums[g*w.Group/layout.Tile : (g+1)*w.Group/layout.Tile] {
				x += s
			}
			y[m] += w.scaled(m, g, t-layout.ByteZero*x, x)
		}
	}
}
