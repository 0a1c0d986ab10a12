package ref

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/hmx"
	"github.com/lutra-lm/lutra/hexagon/layout"
)

const tile = 1024 // numbers

// Dequant computes OpDequant: blocks [first, first+n) of a strip to tiles [4][2n].
func Dequant(tiles []uint16, w *Matrix, v []uint16, strip, first, n int) {
	codes := w.strip(strip)
	for row := range layout.Strip {
		for k := first * layout.Block; k < (first+n)*layout.Block; k++ {
			var q int
			if w.InBytes {
				q = w.code(codes, row, k)
			} else {
				q = serial(codes, row, k, w.Bits)
			}
			e := layout.F16(float32(q - layout.ByteZero))
			if w.Bits < 8 {
				e = v[q]
			}
			if w.Group != w.K {
				at := w.scale(strip*layout.Strip+row, k/w.Group)
				e = Mul(e, layout.F16(float32(w.Scales[at])*0x1p-15))
				if w.Offsets != nil {
					e = Add(e, layout.F16(float32(w.Offsets[at])*0x1p-12))
				}
			}
			t := row/layout.Tile*2*n + k/layout.Tile - 2*first
			tiles[t*tile+layout.TileIndex(row%layout.Tile, k%layout.Tile)] = e
		}
	}
}

// serial returns a code of a strip in bit-serial layout.
func serial(codes []byte, row, k, bits int) (q int) {
	block := codes[k/layout.Block*layout.BlockBytes(bits):]
	quad, i := k%16/2, k%2*2+k/16%2
	for plane := range bits {
		q |= layout.Nibble(block, row, plane, k/layout.Tile%2, quad, bits) >> i & 1 << plane
	}
	return q
}

// ByteTiles computes OpByteTiles: n blocks of a strip to tiles [2][2n].
func ByteTiles(tiles, codes []byte, n, bits int) {
	for row := range layout.Strip {
		for k := range n * layout.Block {
			t := row/hmx.ByteRows*2*n + k/layout.Tile
			tiles[t*layout.TileBytes+row%hmx.ByteRows*layout.Tile+k%layout.Tile] = byte(serial(codes, row, k, bits))
		}
	}
}

// TileMulBytes computes OpTileMulBytes.
func TileMulBytes(out, act, wgt []byte, k, rows, cols int) {
	for r := range rows * hmx.ByteRows {
		for c := range cols * layout.Tile {
			var acc int32
			for i := range k * layout.Tile {
				a := act[(r/hmx.ByteRows*k+i/layout.Tile)*layout.TileBytes+r%hmx.ByteRows*layout.Tile+i%layout.Tile]
				w := wgt[(c/layout.Tile*k+i/layout.Tile)*hmx.LanesBytes+hmx.LaneIndex(i%layout.Tile, c%layout.Tile)]
				acc += int32(a) * int32(int8(w))
			}
			planes := out[(r/hmx.ByteRows*cols+c/layout.Tile)*hmx.Planes*layout.TileBytes:]
			for p := range hmx.Planes {
				planes[p*layout.TileBytes+r%hmx.ByteRows*layout.Tile+c%layout.Tile] = byte(acc >> (8 * p))
			}
		}
	}
}

// VLUT16 computes OpVLUT16.
func VLUT16(dst []uint16, groups []byte, v []uint16) {
	for i := range dst {
		group := groups[i/layout.SuperGroup*layout.SuperGroupBytes:]
		dst[i] = layout.SuperGroupValue(group, i%layout.SuperGroup, (*[16]uint16)(v))
	}
}

// Run is tiles to multiply: Act [rows][K] by Wgt [cols][K] of them.
type Run = hmx.Run

// TileMul computes OpTileMul.
func TileMul(out []uint16, runs []Run, rows, cols int, scale float32) {
	for r := range rows * layout.Tile {
		for c := range cols * layout.Tile {
			var acc float32
			for _, run := range runs {
				for k := range run.K * layout.Tile {
					a := run.Act[(r/layout.Tile*run.K+k/layout.Tile)*tile+layout.TileIndex(r%layout.Tile, k%layout.Tile)]
					w := run.Wgt[(c/layout.Tile*run.K+k/layout.Tile)*tile+layout.TileIndex(k%layout.Tile, c%layout.Tile)]
					acc += layout.F32(a) * layout.F32(w)
				}
			}
			out[(r/layout.Tile*cols+c/layout.Tile)*tile+layout.TileIndex(r%layout.Tile, c%layout.Tile)] = layout.F16(acc * scale)
		}
	}
}

// ExpTable computes OpExpTable.
func ExpTable(table []uint16) {
	for b := range uint16(1 << 15) {
		table[b] = 0
		if b < 0x7c00 {
			table[b] = fromF64(math.Exp2(-float64(layout.F32(b))))
		}
	}
}

// Words of a row's state in softmax.
const (
	StateMax = iota
	StateValid
	StateFactor
	StateSumLow
	StateSumHigh
	_
	StateWords
)

// Softmax computes OpSoftmax.
func Softmax(s, table []uint16, states []uint32, diag []uint16, rows, keys int) {
	for r := range rows * layout.Tile {
		state := states[r*StateWords:][:StateWords]
		valid := int(min(state[StateValid], uint32(keys*layout.Tile)))
		at := func(c int) *uint16 {
			return &s[(r/layout.Tile*keys+c/layout.Tile)*tile+layout.TileIndex(r%layout.Tile, c%layout.Tile)]
		}
		old := uint16(state[StateMax])
		largest := old
		for c := range valid {
			if layout.Order(*at(c)) > layout.Order(largest) {
				largest = *at(c)
			}
		}
		var sum uint64
		for c := range keys * layout.Tile {
			var p uint16
			if c < valid {
				p = table[Sub(*at(c), largest)&0x7fff]
			}
			*at(c) = p
			sum += uint64(int64(layout.F32(p) * 0x1p24))
		}
		factor := table[Sub(old, largest)&0x7fff]
		for c := range layout.Tile {
			var d uint16
			if c == r%layout.Tile {
				d = factor
			}
			diag[r/layout.Tile*tile+layout.TileIndex(r%layout.Tile, c)] = d
		}
		state[StateMax] = uint32(largest)
		state[StateFactor] = uint32(factor)
		state[StateSumLow], state[StateSumHigh] = uint32(sum), uint32(sum>>32)
		state[StateWords-1] = 0
	}
}
