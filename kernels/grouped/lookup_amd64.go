//go:build amd64 && !purego

package grouped

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
)

// lookupTile multiplies a tile of tokens by lookup tables: four bits of a row of
// weights name a sum for all tokens at once (Vec-LUT). _gen/grouped/tables.go states
// what a table is.
type lookupTile struct {
	tokens int
	// build makes the tables of groups ≥ 1 groups.
	build func(tables, acts *byte, groups int)
	// rows adds the products of a unit of bands to sums.
	rows func(sums *float32, codes, scales, tables, acts *byte, bands, stride int)
	// store turns the sums of bands over.
	store func(y *float32, ld int, sums *float32, bands int)
}

// TableTokens returns the number of tokens of a tile of tables.
func (q *kernel) TableTokens() int {
	if q.tiles.lookup == nil {
		return 0
	}
	return q.tiles.lookup.tokens
}

// Lookup multiplies bands [s, s+n) with tile number tile of x: unit by unit of
// columns, whose tables all rows share while they are in L1.
func (q *kernel) Lookup(scratch *bands.Scratch, y []float32, ld, s, n int, x *acts.Rows, tile int) {
	f, l := q.f, q.tiles.lookup
	stride, size := q.BandBytes(), f.unit*acts.GroupLaneBytes(l.tokens)
	codes, scales := bandOf(q.w, s)
	lanes := x.Groups(acts.Unlimited).Lanes(tile)
	sums := scratch.Sums[:n*bands.Rows*l.tokens]
	clear(sums)
	_, _ = bandOf(q.w, s+n-1)
	_ = y[(l.tokens-1)*ld+n*bands.Rows-1]
	for u := range q.w.Cols / UnitCols(q.w.Packing) {
		acts := lanes[u*size:][:size]
		l.build(&scratch.Tables[0], &acts[0], f.unit)
		l.rows(&sums[0], &codes[u*f.unit*f.codeBytes], &scales[u*f.unitBytes], &scratch.Tables[0], &acts[0], n, stride)
	}
	l.store(&y[0], ld, &sums[0], n)
}
