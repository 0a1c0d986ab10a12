package ref

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/layout"
)

// Exponents of float32 that OpRowsToTiles gives its scales.
const leastExponent, mostExponent = 1, 253

// RowsToTiles computes OpRowsToTiles: dst [(n+31)/32][k/32] tiles.
func RowsToTiles(dst []uint16, scales []float32, src Rows, n, k, width int) {
	clear(dst)
	for i := range n {
		var most uint32
		x := src.row(i, width)
		for _, v := range x {
			most = max(most, math.Float32bits(v)&0x7fffffff)
		}
		e := max(leastExponent, min(most>>23+1, mostExponent))
		scales[i] = math.Float32frombits(e << 23)
		inverse := math.Float32frombits((254 - e) << 23)
		column := dst[i/layout.Tile*layout.Tile*k:]
		for j, v := range x {
			column[j/layout.Tile*tile+layout.TileIndex(j%layout.Tile, i%layout.Tile)] = layout.F16(v * inverse)
		}
	}
}

// TilesToRows computes rows [first, end) of OpTilesToRows: tiles [width/32][columns].
func TilesToRows(dst Rows, tiles []uint16, scales, r, bias []float32, first, end, width, columns int, factor float32, more bool) {
	for i := first; i < end; i++ {
		y, scale := dst.row(i, width), scales[i]*factor
		for m := range y {
			h := tiles[(m/layout.Tile*columns+i/layout.Tile)*tile+layout.TileIndex(m%layout.Tile, i%layout.Tile)]
			v := float32(float32(layout.F32(h)*r[m]) * scale)
			if bias != nil {
				v += bias[m]
			}
			if more {
				v += y[m]
			}
			y[m] = v
		}
	}
}
