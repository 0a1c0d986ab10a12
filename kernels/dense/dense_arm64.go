//go:build arm64 && !purego

package dense

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// tileFunc adds to y[tokens][16] the products of k columns.
type tileFunc func(y *float32, ld int, w *byte, x *float32, ldx, k int)

// tileSet are the kernels of one packing, the i-th one for i+1 tokens.
type tileSet []tileFunc

var neonTiles = map[matrix.Packing]tileSet{
	matrix.F32:  {denseF32NEONx1, denseF32NEONx2, denseF32NEONx3, denseF32NEONx4},
	matrix.F16:  {denseF16NEONx1, denseF16NEONx2, denseF16NEONx3, denseF16NEONx4},
	matrix.BF16: {denseBF16NEONx1, denseBF16NEONx2, denseBF16NEONx3, denseBF16NEONx4},
}

func tilesFor(i cpu.ISA, p matrix.Packing) tileSet {
	if i == cpu.NEON {
		return neonTiles[p]
	}
	return nil
}

// Add adds the products of a tile of tokens after the other.
func (d *kernel) Add(_ *bands.Scratch, y []float32, ld, s, n int, x *acts.Rows, t, tEnd, kLo, kHi int) {
	if d.tile == nil {
		d.addGeneric(y, ld, s, n, x, t, tEnd, kLo, kHi)
		return
	}
	size := weightBytes(d.w.Packing)
	for b := range n {
		w := d.w.Data[((s+b)*d.w.Cols+kLo)*bands.Rows*size:][:(kHi-kLo)*bands.Rows*size]
		for i := t; i < tEnd; {
			tokens := cpu.TileWidth(tEnd-i, len(d.tile))
			out := y[b*bands.Rows+(i-t)*ld:]
			_ = out[(tokens-1)*ld+bands.Rows-1]
			d.tile[tokens-1](&out[0], ld, &w[0], &x.Row(i)[kLo], x.K(), kHi-kLo)
			i += tokens
		}
	}
}
