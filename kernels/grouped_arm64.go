//go:build arm64 && !purego

package kernels

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// groupedTile adds to y[tokens][16] the products of some groups of a band.
type groupedTile func(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

// groupedTiles are the kernels of one packing, the i-th one for i+1 tokens.
type groupedTiles []groupedTile

var groupedNEON = map[Packing]groupedTiles{
	Q4:  {groupedQ4NEONx1, groupedQ4NEONx2},
	Q4M: {groupedQ4MNEONx1, groupedQ4MNEONx2},
	Q6:  {groupedQ6NEONx1, groupedQ6NEONx2},
	Q8:  {groupedQ8NEONx1, groupedQ8NEONx2},
}

// groupedTilesFor gives none where SDOT is missing: the portable kernels serve.
func groupedTilesFor(i cpu.ISA, p Packing) groupedTiles {
	if i == cpu.NEON && cpu.HasDotProd {
		return groupedNEON[p]
	}
	return nil
}

// Prepare quantises the rows of x in groups.
func (q *groupedKernel) Prepare(p *pool.Pool, x *Rows) { x.MakeGroups(p) }

// Add adds the products of groups [kLo/32, kHi/32).
func (q *groupedKernel) Add(_ *Scratch, y []float32, ld, s, n int, x *Rows, t, tEnd, kLo, kHi int) {
	for i := range n {
		if q.tiles == nil {
			q.addGeneric(y[i*bandRows:], ld, s+i, x, t, tEnd, kLo/GroupCols, kHi/GroupCols)
		} else {
			q.addBand(y[i*bandRows:], ld, s+i, x, t, tEnd, kLo/GroupCols, kHi/GroupCols)
		}
	}
}

// addBand adds groups [gLo, gHi) of band s.
func (q *groupedKernel) addBand(y []float32, ld, s int, x *Rows, t, tEnd, gLo, gHi int) {
	f := q.f
	codes, scales := bandOf(q.w, s)
	codes = codes[gLo*f.codeBytes : gHi*f.codeBytes]
	scales = scales[gLo/f.unit*f.unitBytes : gHi/f.unit*f.unitBytes]
	lda := x.GroupStride()
	for t < tEnd {
		n := cpu.TileWidth(tEnd-t, len(q.tiles))
		acts := x.Groups()[t*lda+gLo*RecordBytes:]
		_, _ = y[(n-1)*ld+bandRows-1], acts[(n-1)*lda+(gHi-gLo)*RecordBytes-1]
		q.tiles[n-1](&y[0], ld, &codes[0], &scales[0], &acts[0], lda, gHi-gLo)
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}
