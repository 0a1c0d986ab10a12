//go:build amd64 && !purego

package grouped

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// gfniTiles are tiles for processors whose multipliers share their ports with what
// unpacks codes, the i-th for i+2 tokens, up to pair tokens of two bands and then of one.
type gfniTiles struct {
	one   streamTile // one token, in place of the tile set's; nil: that one
	pair  int
	tiles []pairTile // nil: the tile set's pairs
}

var gfniAVX512 = map[matrix.Packing]*gfniTiles{
	matrix.Q4:     {groupedQ4GFNIAVX512x4x1, 6, []pairTile{groupedQ4GFNIAVX512x2, groupedQ4GFNIAVX512x3, groupedQ4GFNIAVX512x4, groupedQ4GFNIAVX512x5, groupedQ4GFNIAVX512x6, groupedQ4GFNIAVX512x7, groupedQ4GFNIAVX512x8, groupedQ4GFNIAVX512x9, groupedQ4GFNIAVX512x10, groupedQ4GFNIAVX512x11, groupedQ4GFNIAVX512x12, groupedQ4GFNIAVX512x13, groupedQ4GFNIAVX512x14}},
	matrix.Q4M:    {groupedQ4MGFNIAVX512x4x1, 6, []pairTile{groupedQ4MGFNIAVX512x2, groupedQ4MGFNIAVX512x3, groupedQ4MGFNIAVX512x4, groupedQ4MGFNIAVX512x5, groupedQ4MGFNIAVX512x6, groupedQ4MGFNIAVX512x7, groupedQ4MGFNIAVX512x8, groupedQ4MGFNIAVX512x9, groupedQ4MGFNIAVX512x10, groupedQ4MGFNIAVX512x11, groupedQ4MGFNIAVX512x12, groupedQ4MGFNIAVX512x13, groupedQ4MGFNIAVX512x14}},
	matrix.Q6:     {groupedQ6GFNIAVX512x4x1, 4, []pairTile{groupedQ6GFNIAVX512x2, groupedQ6GFNIAVX512x3, groupedQ6GFNIAVX512x4, groupedQ6GFNIAVX512x5, groupedQ6GFNIAVX512x6, groupedQ6GFNIAVX512x7, groupedQ6GFNIAVX512x8, groupedQ6GFNIAVX512x9}},
	matrix.Q8:     {groupedQ8GFNIAVX512x4x1, 6, []pairTile{groupedQ8GFNIAVX512x2, groupedQ8GFNIAVX512x3, groupedQ8GFNIAVX512x4, groupedQ8GFNIAVX512x5, groupedQ8GFNIAVX512x6, groupedQ8GFNIAVX512x7, groupedQ8GFNIAVX512x8, groupedQ8GFNIAVX512x9, groupedQ8GFNIAVX512x10, groupedQ8GFNIAVX512x11, groupedQ8GFNIAVX512x12, groupedQ8GFNIAVX512x13, groupedQ8GFNIAVX512x14}},
	matrix.FP4:    {one: groupedFP4GFNIAVX512x4x1},
	matrix.Q1G128: {nil, 6, []pairTile{groupedQ1G128GFNIAVX512x2, groupedQ1G128GFNIAVX512x3, groupedQ1G128GFNIAVX512x4, groupedQ1G128GFNIAVX512x5, groupedQ1G128GFNIAVX512x6, groupedQ1G128GFNIAVX512x7, groupedQ1G128GFNIAVX512x8, groupedQ1G128GFNIAVX512x9, groupedQ1G128GFNIAVX512x10, groupedQ1G128GFNIAVX512x11, groupedQ1G128GFNIAVX512x12, groupedQ1G128GFNIAVX512x13, groupedQ1G128GFNIAVX512x14}},
	matrix.Q2G64:  q2GFNI(2),
	matrix.Q2G128: q2GFNI(4),
}

func q2GFNI(unit int) *gfniTiles {
	return &gfniTiles{unitStream(unit, groupedQ2GFNIAVX512x4x1), 6, unitPairs(unit, groupedQ2GFNIAVX512x2, groupedQ2GFNIAVX512x3, groupedQ2GFNIAVX512x4, groupedQ2GFNIAVX512x5, groupedQ2GFNIAVX512x6, groupedQ2GFNIAVX512x7, groupedQ2GFNIAVX512x8, groupedQ2GFNIAVX512x9, groupedQ2GFNIAVX512x10, groupedQ2GFNIAVX512x11, groupedQ2GFNIAVX512x12, groupedQ2GFNIAVX512x13, groupedQ2GFNIAVX512x14)}
}

// width returns the tokens of the next tile of n tokens, two or more: as many as
// there can be, but two are left at least. Wide tiles and a narrow one do more
// products a load than tiles of equal width.
func (g *gfniTiles) width(n int) int {
	widest := len(g.tiles) + 1
	if n == widest+1 {
		widest--
	}
	return min(n, widest)
}

// addGFNI adds groups [gLo, gHi) of bands s and s+1 and two tokens or more.
func (q *kernel) addGFNI(y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	f, lda, g := q.f, x.GroupStride(), q.tiles.gfni
	for t < tEnd {
		n, per := g.width(tEnd-t), 1
		if n <= g.pair {
			per = 2
		}
		rec := x.Groups(f.limit)[t*lda+gLo*acts.RecordBytes:]
		_ = rec[(n-1)*lda+(gHi-gLo)*acts.RecordBytes-1]
		for b := 0; b < 2; b += per {
			codes, scales := bandOf(q.w, s+b)
			_, last := bandOf(q.w, s+b+per-1)
			codes, scales = codes[gLo*f.codeBytes:gHi*f.codeBytes], scales[gLo/f.unit*f.unitBytes:]
			_, _ = last[gHi/f.unit*f.unitBytes-1], y[(n-1)*ld+(b+per)*bands.Rows-1]
			// The same share of the bands two further on.
			next := uintptr(unsafe.Pointer(unsafe.SliceData(codes))) - uintptr(gLo*f.codeBytes) + uintptr(2*q.BandBytes()+per*gLo*(f.codeBytes+f.unitBytes/f.unit))
			g.tiles[n-2](&y[b*bands.Rows], ld, &codes[0], &scales[0], q.BandBytes(), &rec[0], lda, gHi-gLo, next)
		}
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}
