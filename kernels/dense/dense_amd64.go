//go:build amd64 && !purego

package dense

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// tileFunc adds to y[tokens][16·bands] the products of k columns.
type tileFunc func(y *float32, ld int, w *byte, stride int, x *float32, ldx, k int)

// tileSet are the kernels of one packing and instruction set.
type tileSet struct {
	four  tileFunc              // four bands, one token
	wider bands.Tiles[tileFunc] // one band
}

func tilesFor(i cpu.ISA, p matrix.Packing) tileSet {
	if i == cpu.AVXVNNI {
		i = cpu.AVX2
	}
	return tileSet{streams[i][p], tiles[i][p]}
}

// Add adds the products of a tile of tokens after the other.
func (d *kernel) Add(_ *bands.Scratch, y []float32, ld, s, n int, x *acts.Rows, t, tEnd, kLo, kHi int) {
	if d.tile.four == nil {
		d.addGeneric(y, ld, s, n, x, t, tEnd, kLo, kHi)
		return
	}
	size := weightBytes(d.w.Packing)
	stride, skip := d.w.Cols*bands.Rows*size, kLo*bands.Rows*size
	w := d.w.Data[s*stride:]
	if tEnd-t == 1 && n == 4 {
		_, _ = y[4*bands.Rows-1], w[4*stride-1]
		d.tile.four(&y[0], ld, &w[skip], stride, &x.Row(t)[kLo], x.K(), kHi-kLo)
		return
	}
	for b := range n {
		for i := t; i < tEnd; {
			tile, tokens := d.tile.wider.Next(tEnd - i)
			out := y[b*bands.Rows+(i-t)*ld:]
			_, _ = out[(tokens-1)*ld+bands.Rows-1], w[(b+1)*stride-1]
			tile(&out[0], ld, &w[b*stride+skip], stride, &x.Row(i)[kLo], x.K(), kHi-kLo)
			i += tokens
		}
	}
}
