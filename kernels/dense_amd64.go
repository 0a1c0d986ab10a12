//go:build amd64 && !purego

package kernels

import "github.com/lutra-lm/lutra/kernels/cpu"

// denseTile adds to y[tokens][16·bands] the products of k columns.
type denseTile func(y *float32, ld int, w *byte, stride int, x *float32, ldx, k int)

// denseTiles are the kernels of one packing and instruction set.
type denseTiles struct {
	four  denseTile   // four bands, one token: enough independent sums to keep up with memory
	wider []denseTile // one band, i+1 tokens
}

var denseAVX2 = map[Packing]denseTiles{
	F32:  {denseF32AVX2x4x1, []denseTile{denseF32AVX2x1x1, denseF32AVX2x1x2, denseF32AVX2x1x3, denseF32AVX2x1x4, denseF32AVX2x1x5, denseF32AVX2x1x6}},
	F16:  {denseF16AVX2x4x1, []denseTile{denseF16AVX2x1x1, denseF16AVX2x1x2, denseF16AVX2x1x3, denseF16AVX2x1x4, denseF16AVX2x1x5, denseF16AVX2x1x6}},
	BF16: {denseBF16AVX2x4x1, []denseTile{denseBF16AVX2x1x1, denseBF16AVX2x1x2, denseBF16AVX2x1x3, denseBF16AVX2x1x4, denseBF16AVX2x1x5, denseBF16AVX2x1x6}},
}

var denseAVX512 = map[Packing]denseTiles{
	F32:  {denseF32AVX512x4x1, []denseTile{denseF32AVX512x1x1, denseF32AVX512x1x2, denseF32AVX512x1x3, denseF32AVX512x1x4, denseF32AVX512x1x5, denseF32AVX512x1x6, denseF32AVX512x1x7, denseF32AVX512x1x8, denseF32AVX512x1x9, denseF32AVX512x1x10, denseF32AVX512x1x11, denseF32AVX512x1x12}},
	F16:  {denseF16AVX512x4x1, []denseTile{denseF16AVX512x1x1, denseF16AVX512x1x2, denseF16AVX512x1x3, denseF16AVX512x1x4, denseF16AVX512x1x5, denseF16AVX512x1x6, denseF16AVX512x1x7, denseF16AVX512x1x8, denseF16AVX512x1x9, denseF16AVX512x1x10, denseF16AVX512x1x11, denseF16AVX512x1x12}},
	BF16: {denseBF16AVX512x4x1, []denseTile{denseBF16AVX512x1x1, denseBF16AVX512x1x2, denseBF16AVX512x1x3, denseBF16AVX512x1x4, denseBF16AVX512x1x5, denseBF16AVX512x1x6, denseBF16AVX512x1x7, denseBF16AVX512x1x8, denseBF16AVX512x1x9, denseBF16AVX512x1x10, denseBF16AVX512x1x11, denseBF16AVX512x1x12}},
}

func denseTilesFor(i cpu.ISA, p Packing) denseTiles {
	switch i {
	case cpu.AVX2, cpu.AVXVNNI:
		return denseAVX2[p]
	case cpu.AVX512:
		return denseAVX512[p]
	}
	return denseTiles{}
}

// Add adds the products of a tile of tokens after the other.
func (d *denseKernel) Add(_ *Scratch, y []float32, ld, s, n int, x *Rows, t, tEnd, kLo, kHi int) {
	if d.tile.four == nil {
		d.addGeneric(y, ld, s, n, x, t, tEnd, kLo, kHi)
		return
	}
	size := weightBytes(d.w.Packing)
	stride, skip := d.w.Cols*bandRows*size, kLo*bandRows*size
	w := d.w.Data[s*stride:]
	if tEnd-t == 1 && n == 4 {
		_, _ = y[4*bandRows-1], w[4*stride-1]
		d.tile.four(&y[0], ld, &w[skip], stride, &x.Row(t)[kLo], x.K(), kHi-kLo)
		return
	}
	for b := range n {
		for i := t; i < tEnd; {
			tokens := cpu.TileWidth(tEnd-i, len(d.tile.wider))
			out := y[b*bandRows+(i-t)*ld:]
			_, _ = out[(tokens-1)*ld+bandRows-1], w[(b+1)*stride-1]
			d.tile.wider[tokens-1](&out[0], ld, &w[b*stride+skip], stride, &x.Row(i)[kLo], x.K(), kHi-kLo)
			i += tokens
		}
	}
}
