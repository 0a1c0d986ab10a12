//go:build amd64 && !purego

package grouped

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// gfniTiles are tiles for processors whose multipliers share their ports with what
// unpacks codes, the i-th for i+2 tokens, up to pair tokens of two bands and then of one.
type gfniTiles struct {
	one   streamTile // one token, in place of the tile set's; nil: that one
	pair  int
	tiles []pairTile
	panel *gfniPanel // for many tokens; nil: none
}

// gfniPanel unpacks two bands, and multiplies what is unpacked. _gen/grouped/gfni_panel.go
// states what a panel is.
type gfniPanel struct {
	from  int // tokens from which the faster products outweigh the unpacking
	write func(panel, codes, scales *byte, stride, groups int)
	group int // bytes
	least int // tokens of the first of tiles
	tiles []gfniPanelTile
}

// gfniPanelTile adds to y[tokens][32] the products of the groups of a panel, and prefetches
// some lines a group from fetch on.
type gfniPanelTile func(y *float32, ld int, panel, acts *byte, lda, groups int, fetch uintptr, lines int)

var gfniAVX512 = map[matrix.Packing]*gfniTiles{
	matrix.Q4:     {groupedQ4GFNIAVX512x4x1, 6, []pairTile{groupedQ4GFNIAVX512x2, groupedQ4GFNIAVX512x3, groupedQ4GFNIAVX512x4, groupedQ4GFNIAVX512x5, groupedQ4GFNIAVX512x6, groupedQ4GFNIAVX512x7, groupedQ4GFNIAVX512x8, groupedQ4GFNIAVX512x9, groupedQ4GFNIAVX512x10, groupedQ4GFNIAVX512x11, groupedQ4GFNIAVX512x12, groupedQ4GFNIAVX512x13, groupedQ4GFNIAVX512x14}, bytesPanel(29, gfniPanelQ4AVX512)},
	matrix.Q4M:    {groupedQ4MGFNIAVX512x4x1, 6, []pairTile{groupedQ4MGFNIAVX512x2, groupedQ4MGFNIAVX512x3, groupedQ4MGFNIAVX512x4, groupedQ4MGFNIAVX512x5, groupedQ4MGFNIAVX512x6, groupedQ4MGFNIAVX512x7, groupedQ4MGFNIAVX512x8, groupedQ4MGFNIAVX512x9, groupedQ4MGFNIAVX512x10, groupedQ4MGFNIAVX512x11, groupedQ4MGFNIAVX512x12, groupedQ4MGFNIAVX512x13, groupedQ4MGFNIAVX512x14}, leastPanel(gfniPanelQ4MAVX512)},
	matrix.Q41:    {groupedQ41GFNIAVX512x4x1, 6, []pairTile{groupedQ41GFNIAVX512x2, groupedQ41GFNIAVX512x3, groupedQ41GFNIAVX512x4, groupedQ41GFNIAVX512x5, groupedQ41GFNIAVX512x6, groupedQ41GFNIAVX512x7, groupedQ41GFNIAVX512x8, groupedQ41GFNIAVX512x9, groupedQ41GFNIAVX512x10, groupedQ41GFNIAVX512x11, groupedQ41GFNIAVX512x12, groupedQ41GFNIAVX512x13, groupedQ41GFNIAVX512x14}, leastPanel(gfniPanelQ41AVX512)},
	matrix.Q6:     {groupedQ6GFNIAVX512x4x1, 4, []pairTile{groupedQ6GFNIAVX512x2, groupedQ6GFNIAVX512x3, groupedQ6GFNIAVX512x4, groupedQ6GFNIAVX512x5, groupedQ6GFNIAVX512x6, groupedQ6GFNIAVX512x7, groupedQ6GFNIAVX512x8, groupedQ6GFNIAVX512x9}, &gfniPanel{10, gfniPanelQ6AVX512, 1408, 3, []gfniPanelTile{gfniQ6PanelAVX512x3, gfniQ6PanelAVX512x4}}},
	matrix.Q8:     {groupedQ8GFNIAVX512x4x1, 8, []pairTile{groupedQ8GFNIAVX512x2, groupedQ8GFNIAVX512x3, groupedQ8GFNIAVX512x4, groupedQ8GFNIAVX512x5, groupedQ8GFNIAVX512x6, groupedQ8GFNIAVX512x7, groupedQ8GFNIAVX512x8, groupedQ8GFNIAVX512x9, groupedQ8GFNIAVX512x10, groupedQ8GFNIAVX512x11, groupedQ8GFNIAVX512x12, groupedQ8GFNIAVX512x13, groupedQ8GFNIAVX512x14}, bytesPanel(29, gfniPanelQ8AVX512)},
	matrix.Q1G128: {nil, 6, []pairTile{groupedQ1G128GFNIAVX512x2, groupedQ1G128GFNIAVX512x3, groupedQ1G128GFNIAVX512x4, groupedQ1G128GFNIAVX512x5, groupedQ1G128GFNIAVX512x6, groupedQ1G128GFNIAVX512x7, groupedQ1G128GFNIAVX512x8, groupedQ1G128GFNIAVX512x9, groupedQ1G128GFNIAVX512x10, groupedQ1G128GFNIAVX512x11, groupedQ1G128GFNIAVX512x12, groupedQ1G128GFNIAVX512x13, groupedQ1G128GFNIAVX512x14}, nil},
	matrix.FP4:    {groupedFP4GFNIAVX512x4x1, 6, []pairTile{groupedFP4GFNIAVX512x2, groupedFP4GFNIAVX512x3, groupedFP4GFNIAVX512x4, groupedFP4GFNIAVX512x5, groupedFP4GFNIAVX512x6, groupedFP4GFNIAVX512x7, groupedFP4GFNIAVX512x8, groupedFP4GFNIAVX512x9}, bytesPanel(10, gfniPanelFP4AVX512)},
	matrix.Q2G64:  q2GFNI(2),
	matrix.Q2G128: q2GFNI(4),
}

// bytesPanel returns the tiles of codes that are bytes once write has unpacked them, for
// from tokens and more.
func bytesPanel(from int, write func(panel, codes, scales *byte, stride, groups int)) *gfniPanel {
	return &gfniPanel{from, write, 1280, 5, []gfniPanelTile{gfniBytesPanelAVX512x5, gfniBytesPanelAVX512x6, gfniBytesPanelAVX512x7}}
}

// leastPanel returns the tiles of codes with minimums once write has unpacked them.
func leastPanel(write func(panel, codes, scales *byte, stride, groups int)) *gfniPanel {
	return &gfniPanel{16, write, 1408, 5, []gfniPanelTile{gfniLeastPanelAVX512x5, gfniLeastPanelAVX512x6, gfniLeastPanelAVX512x7}}
}

func q2GFNI(unit int) *gfniTiles {
	return &gfniTiles{unitStream(unit, groupedQ2GFNIAVX512x4x1), 6, unitPairs(unit, groupedQ2GFNIAVX512x2, groupedQ2GFNIAVX512x3, groupedQ2GFNIAVX512x4, groupedQ2GFNIAVX512x5, groupedQ2GFNIAVX512x6, groupedQ2GFNIAVX512x7, groupedQ2GFNIAVX512x8, groupedQ2GFNIAVX512x9, groupedQ2GFNIAVX512x10, groupedQ2GFNIAVX512x11, groupedQ2GFNIAVX512x12, groupedQ2GFNIAVX512x13, groupedQ2GFNIAVX512x14), nil}
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
func (q *kernel) addGFNI(scratch *bands.Scratch, g *gfniTiles, y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	f, lda := q.f, x.GroupStride()
	if g.panel != nil && tEnd-t >= g.panel.from {
		q.addGFNIPanels(scratch.Panel, g.panel, y, ld, s, x, t, tEnd, gLo, gHi)
		return
	}
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

// panelStep returns how many of n groups, in whole units, panels of much the same size have: each tile
// begins with sums in memory and ends with them there, which is much beside a few groups.
func panelStep(n, unit int) int {
	panels := (n + bands.PanelGroups - 1) / bands.PanelGroups
	return (n/unit + panels - 1) / panels * unit
}

// addGFNIPanels adds groups [gLo, gHi) of bands s and s+1 by way of panels.
func (q *kernel) addGFNIPanels(panel []byte, p *gfniPanel, y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	f, lda := q.f, x.GroupStride()
	widest := p.least + len(p.tiles) - 1
	codes, scales := bandOf(q.w, s)
	_, last := bandOf(q.w, s+1)
	_ = last[gHi/f.unit*f.unitBytes-1]
	// The same codes of the next two bands, one after the other, a share in each group of each tile.
	next := [2]uintptr{uintptr(unsafe.Pointer(unsafe.SliceData(codes))) + uintptr(2*q.BandBytes()+gLo*f.codeBytes)}
	next[1] = next[0] + uintptr(q.BandBytes())
	tiles := (tEnd - t + widest - 1) / widest
	lines := (2*f.codeBytes/64 + tiles - 1) / tiles
	fetch, end := next[0], next[0]+uintptr((gHi-gLo)*f.codeBytes)
	step := panelStep(gHi-gLo, f.unit)
	for lo := gLo; lo < gHi; lo += step {
		hi := min(lo+step, gHi)
		n := hi - lo
		panel := panel[:n*p.group]
		codes, scales := codes[lo*f.codeBytes:hi*f.codeBytes], scales[lo/f.unit*f.unitBytes:hi/f.unit*f.unitBytes]
		p.write(&panel[0], &codes[0], &scales[0], q.BandBytes(), n)
		y := y
		for i := t; i < tEnd; {
			tokens := cpu.TileWidth(tEnd-i, widest)
			rec := x.Groups(f.limit)[i*lda+lo*acts.RecordBytes:]
			_, _ = y[(tokens-1)*ld+2*bands.Rows-1], rec[(tokens-1)*lda+n*acts.RecordBytes-1]
			p.tiles[tokens-p.least](&y[0], ld, &panel[0], &rec[0], lda, n, fetch, lines)
			if fetch += uintptr(64 * lines * n); fetch >= end {
				fetch, end = next[1], next[1]+uintptr((gHi-gLo)*f.codeBytes)
			}
			if i += tokens; i < tEnd {
				y = y[tokens*ld:]
			}
		}
	}
}
