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
	four  tileFunc   // four bands, one token: enough independent sums to keep up with memory
	wider []tileFunc // one band, i+1 tokens
}

var avx2Tiles = map[matrix.Packing]tileSet{
	matrix.F32:  {denseF32AVX2x4x1, []tileFunc{denseF32AVX2x1x1, denseF32AVX2x1x2, denseF32AVX2x1x3, denseF32AVX2x1x4, denseF32AVX2x1x5, denseF32AVX2x1x6}},
	matrix.F16:  {denseF16AVX2x4x1, []tileFunc{denseF16AVX2x1x1, denseF16AVX2x1x2, denseF16AVX2x1x3, denseF16AVX2x1x4, denseF16AVX2x1x5, denseF16AVX2x1x6}},
	matrix.BF16: {denseBF16AVX2x4x1, []tileFunc{denseBF16AVX2x1x1, denseBF16AVX2x1x2, denseBF16AVX2x1x3, denseBF16AVX2x1x4, denseBF16AVX2x1x5, denseBF16AVX2x1x6}},
}

var avx512Tiles = map[matrix.Packing]tileSet{
	matrix.F32:  {denseF32AVX512x4x1, []tileFunc{denseF32AVX512x1x1, denseF32AVX512x1x2, denseF32AVX512x1x3, denseF32AVX512x1x4, denseF32AVX512x1x5, denseF32AVX512x1x6, denseF32AVX512x1x7, denseF32AVX512x1x8, denseF32AVX512x1x9, denseF32AVX512x1x10, denseF32AVX512x1x11, denseF32AVX512x1x12}},
	matrix.F16:  {denseF16AVX512x4x1, []tileFunc{denseF16AVX512x1x1, denseF16AVX512x1x2, denseF16AVX512x1x3, denseF16AVX512x1x4, denseF16AVX512x1x5, denseF16AVX512x1x6, denseF16AVX512x1x7, denseF16AVX512x1x8, denseF16AVX512x1x9, denseF16AVX512x1x10, denseF16AVX512x1x11, denseF16AVX512x1x12}},
	matrix.BF16: {denseBF16AVX512x4x1, []tileFunc{denseBF16AVX512x1x1, denseBF16AVX512x1x2, denseBF16AVX512x1x3, denseBF16AVX512x1x4, denseBF16AVX512x1x5, denseBF16AVX512x1x6, denseBF16AVX512x1x7, denseBF16AVX512x1x8, denseBF16AVX512x1x9, denseBF16AVX512x1x10, denseBF16AVX512x1x11, denseBF16AVX512x1x12}},
}

func tilesFor(i cpu.ISA, p matrix.Packing) tileSet {
	switch i {
	case cpu.AVX2, cpu.AVXVNNI:
		return avx2Tiles[p]
	case cpu.AVX512:
		return avx512Tiles[p]
	}
	return tileSet{}
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
			tokens := cpu.TileWidth(tEnd-i, len(d.tile.wider))
			out := y[b*bands.Rows+(i-t)*ld:]
			_, _ = out[(tokens-1)*ld+bands.Rows-1], w[(b+1)*stride-1]
			d.tile.wider[tokens-1](&out[0], ld, &w[b*stride+skip], stride, &x.Row(i)[kLo], x.K(), kHi-kLo)
			i += tokens
		}
	}
}
