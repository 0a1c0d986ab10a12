//go:build arm64 && !purego

package grouped

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// tileFunc adds to y[tokens][16] the products of some groups of a band.
type tileFunc func(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

// tileSet are the kernels of one packing, the i-th one for i+1 tokens.
type tileSet []tileFunc

var neonTiles = map[matrix.Packing]tileSet{
	matrix.Q4:  {groupedQ4NEONx1, groupedQ4NEONx2},
	matrix.Q4M: {groupedQ4MNEONx1, groupedQ4MNEONx2},
	matrix.Q6:  {groupedQ6NEONx1, groupedQ6NEONx2},
	matrix.Q8:  {groupedQ8NEONx1, groupedQ8NEONx2},
	matrix.FP4: {groupedFP4NEONx1, groupedFP4NEONx2},

	matrix.Q1G128: {groupedQ1G128NEONx1, groupedQ1G128NEONx2, groupedQ1G128NEONx3, groupedQ1G128NEONx4},
	matrix.Q2G64:  {groupedQ2G64NEONx1, groupedQ2G64NEONx2, groupedQ2G64NEONx3, groupedQ2G64NEONx4},
	matrix.Q2G128: {groupedQ2G128NEONx1, groupedQ2G128NEONx2, groupedQ2G128NEONx3, groupedQ2G128NEONx4},
}

// i8mmTiles take tokens in pairs, which SMMLA multiplies; an odd one is left to SDOT.
var i8mmTiles = map[matrix.Packing]tileSet{
	matrix.Q1G128: {groupedQ1G128NEONx1, groupedQ1G128I8MMx2, groupedQ1G128NEONx3, groupedQ1G128I8MMx4},
	matrix.Q2G64:  {groupedQ2G64NEONx1, groupedQ2G64I8MMx2, groupedQ2G64NEONx3, groupedQ2G64I8MMx4},
	matrix.Q2G128: {groupedQ2G128NEONx1, groupedQ2G128I8MMx2, groupedQ2G128NEONx3, groupedQ2G128I8MMx4},
}

// tilesFor gives none where SDOT is missing: the portable kernels serve.
func tilesFor(i cpu.ISA, p matrix.Packing) tileSet {
	switch {
	case i != cpu.NEON || !cpu.HasDotProd:
		return nil
	case cpu.HasI8MM && i8mmTiles[p] != nil:
		return i8mmTiles[p]
	}
	return neonTiles[p]
}

// Prepare quantises the rows of x in groups.
func (q *kernel) Prepare(p *pool.Pool, x *acts.Rows) { x.MakeGroups(p, q.f.limit) }

// Add adds the products of groups [kLo/32, kHi/32).
func (q *kernel) Add(_ *bands.Scratch, y []float32, ld, s, n int, x *acts.Rows, t, tEnd, kLo, kHi int) {
	for i := range n {
		if q.tiles == nil {
			q.addGeneric(y[i*bands.Rows:], ld, s+i, x, t, tEnd, kLo/acts.GroupCols, kHi/acts.GroupCols)
		} else {
			q.addBand(y[i*bands.Rows:], ld, s+i, x, t, tEnd, kLo/acts.GroupCols, kHi/acts.GroupCols)
		}
	}
}

// addBand adds groups [gLo, gHi) of band s.
func (q *kernel) addBand(y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	f := q.f
	codes, scales := bandOf(q.w, s)
	codes = codes[gLo*f.codeBytes : gHi*f.codeBytes]
	scales = scales[gLo/f.unit*f.unitBytes : gHi/f.unit*f.unitBytes]
	lda := x.GroupStride()
	for t < tEnd {
		n := cpu.TileWidth(tEnd-t, len(q.tiles))
		rec := x.Groups(q.f.limit)[t*lda+gLo*acts.RecordBytes:]
		_, _ = y[(n-1)*ld+bands.Rows-1], rec[(n-1)*lda+(gHi-gLo)*acts.RecordBytes-1]
		q.tiles[n-1](&y[0], ld, &codes[0], &scales[0], &rec[0], lda, gHi-gLo)
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}
