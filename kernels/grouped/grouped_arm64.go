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

// tileSet are the kernels of one packing, the i-th of direct for i+1 tokens.
type tileSet struct {
	direct []tileFunc
	panel  *panelTiles // of pairs of tokens, where there are many; nil without SMMLA
}

var neonTiles = map[matrix.Packing][]tileFunc{
	matrix.Q4:  {groupedQ4NEONx1, groupedQ4NEONx2},
	matrix.Q4M: {groupedQ4MNEONx1, groupedQ4MNEONx2},
	matrix.Q41: {groupedQ41NEONx1, groupedQ41NEONx2},
	matrix.Q6:  {groupedQ6NEONx1, groupedQ6NEONx2},
	matrix.Q8:  {groupedQ8NEONx1, groupedQ8NEONx2},
	matrix.FP4: {groupedFP4NEONx1, groupedFP4NEONx2},

	matrix.Q1G128: {groupedQ1G128NEONx1, groupedQ1G128NEONx2, groupedQ1G128NEONx3, groupedQ1G128NEONx4},
	matrix.Q2G64:  {groupedQ2G64NEONx1, groupedQ2G64NEONx2, groupedQ2G64NEONx3, groupedQ2G64NEONx4},
	matrix.Q2G128: {groupedQ2G128NEONx1, groupedQ2G128NEONx2, groupedQ2G128NEONx3, groupedQ2G128NEONx4},
}

// halfTile is a tileFunc of codes whose levels are given, times a factor.
type halfTile func(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)

var halfTiles = map[matrix.Packing][]halfTile{
	matrix.NL4:   {halvesNL4NEONx1, halvesNL4NEONx2},
	matrix.NL4K:  {halvesNL4KNEONx1, halvesNL4KNEONx2},
	matrix.NVFP4: {halvesNVFP4NEONx1, halvesNVFP4NEONx2},
	matrix.NL4S:  {halvesNL4SNEONx1, halvesNL4SNEONx2},
	matrix.NL3K:  {halvesNL3KNEONx1, halvesNL3KNEONx2},
}

// of makes a tile of levels.
func (f halfTile) of(l *matrix.Levels) tileFunc {
	return func(y *float32, ld int, codes, scales, acts *byte, lda, groups int) {
		f(y, ld, codes, scales, acts, lda, groups, &l.Of[0], l.Scale)
	}
}

// kernelFor returns the kernel of an instruction set, without tiles where SDOT is missing: the portable products serve.
func kernelFor(i cpu.ISA, w *matrix.Matrix) bands.Kernel {
	if i != cpu.NEON || !cpu.HasDotProd {
		return &kernel{product: productOf(w)}
	}
	t := tileSet{direct: neonTiles[w.Packing]}
	for _, f := range halfTiles[w.Packing] {
		t.direct = append(t.direct, f.of(w.Levels))
	}
	if cpu.HasI8MM {
		t.panel = i8mmPanels[w.Packing]
	}
	return &kernel{productOf(w), t}
}

// Prepare quantises the rows of x in groups.
func (q *kernel) Prepare(p *pool.Pool, x *acts.Rows) {
	q.quantise(p, x)
	if q.tiles.panel != nil && x.N() >= panelFrom {
		x.Groups(q.f.limit).MakePairs(p)
	}
}

// Add adds the products of groups [kLo/32, kHi/32).
func (q *kernel) Add(scratch *bands.Scratch, y []float32, ld, s, n int, x *acts.Rows, t, tEnd, kLo, kHi int) {
	gLo, gHi := kLo/acts.GroupCols, kHi/acts.GroupCols
	for i := range n {
		y := y[i*bands.Rows:]
		switch {
		case q.tiles.direct == nil:
			q.addGeneric(y, ld, s+i, x, t, tEnd, gLo, gHi)
		case q.tiles.panel != nil && tEnd-t >= panelFrom:
			for g := gLo; g < gHi; g += bands.PanelGroups {
				end := min(g+bands.PanelGroups, gHi)
				if left := q.tiles.panel.add(&q.product, scratch.Panel, y, ld, s+i, x, t, tEnd, g, end); left < tEnd {
					q.addBand(y[(left-t)*ld:], ld, s+i, x, left, tEnd, g, end)
				}
			}
		default:
			q.addBand(y, ld, s+i, x, t, tEnd, gLo, gHi)
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
		n := cpu.TileWidth(tEnd-t, len(q.tiles.direct))
		rec := x.Groups(q.f.limit).Records()[t*lda+gLo*acts.RecordBytes:]
		_, _ = y[(n-1)*ld+bands.Rows-1], rec[(n-1)*lda+(gHi-gLo)*acts.RecordBytes-1]
		q.tiles.direct[n-1](&y[0], ld, &codes[0], &scales[0], &rec[0], lda, gHi-gLo)
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}
