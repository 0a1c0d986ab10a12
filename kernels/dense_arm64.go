//go:build arm64 && !purego

package kernels

import "github.com/lutra-lm/lutra/kernels/cpu"

// denseTile adds to y[tokens][16] the products of k columns.
type denseTile func(y *float32, ld int, w *byte, x *float32, ldx, k int)

// denseTiles are the kernels of one packing, the i-th one for i+1 tokens.
type denseTiles []denseTile

var denseNEON = map[Packing]denseTiles{
	F32:  {denseF32NEONx1, denseF32NEONx2, denseF32NEONx3, denseF32NEONx4},
	F16:  {denseF16NEONx1, denseF16NEONx2, denseF16NEONx3, denseF16NEONx4},
	BF16: {denseBF16NEONx1, denseBF16NEONx2, denseBF16NEONx3, denseBF16NEONx4},
}

func denseTilesFor(i cpu.ISA, p Packing) denseTiles {
	if i == cpu.NEON {
		return denseNEON[p]
	}
	return nil
}

// Add adds the products of a tile of tokens after the other.
func (d *denseKernel) Add(_ *Scratch, y []float32, ld, s, n int, x *Rows, t, tEnd, kLo, kHi int) {
	if d.tile == nil {
		d.addGeneric(y, ld, s, n, x, t, tEnd, kLo, kHi)
		return
	}
	size := weightBytes(d.w.Packing)
	for b := range n {
		w := d.w.Data[((s+b)*d.w.Cols+kLo)*bandRows*size:][:(kHi-kLo)*bandRows*size]
		for i := t; i < tEnd; {
			tokens := cpu.TileWidth(tEnd-i, len(d.tile))
			out := y[b*bandRows+(i-t)*ld:]
			_ = out[(tokens-1)*ld+bandRows-1]
			d.tile[tokens-1](&out[0], ld, &w[0], &x.Row(i)[kLo], x.K(), kHi-kLo)
			i += tokens
		}
	}
}
