//go:build amd64 && !purego

package grouped

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// gfniTiles are tiles for processors whose multipliers share their ports with what
// unpacks codes.
type gfniTiles struct {
	one   streamTile            // one token, in place of the tile set's; nil: that one
	pair  int                   // tokens up to which tiles multiply two bands, not one
	tiles bands.Tiles[pairTile] // two tokens at least; wide ones and a narrow one do more products a load than equal ones
	panel *gfniPanel            // for many tokens; nil: none
}

// gfniPanel unpacks two bands, and multiplies what is unpacked. _gen/grouped/gfni_panel.go
// states what a panel is.
type gfniPanel struct {
	from  int // tokens from which the faster products outweigh the unpacking
	write gfniWriter
	group int // bytes
	tiles bands.Tiles[gfniPanelTile]
}

type (
	// gfniWriter unpacks some groups of two bands.
	gfniWriter func(panel, codes, scales *byte, stride, groups int)
	// gfniPanelTile adds to y[tokens][32] the products of the groups of a panel, and prefetches
	// some lines a group from fetch on.
	gfniPanelTile func(y *float32, ld int, panel, acts *byte, lda, groups int, fetch uintptr, lines int)
)

// gfniOf returns the tiles of a packing; nil where there are none.
func gfniOf(p matrix.Packing) *gfniTiles {
	pair := 6 // what registers hold
	switch p {
	case matrix.Q2G64, matrix.Q2G128:
		unit := formats[p].unit
		return &gfniTiles{bindUnitStream(unit, unitStreams[gfni]), pair, bindUnitPairs(unit, unitPairs[gfni]).WidestFirst(), nil}
	case matrix.Q6:
		pair = 4
	case matrix.Q8:
		pair = 8
	}
	t, ok := pairs[gfni][p]
	if !ok {
		return nil
	}
	return &gfniTiles{streams[gfni][p], pair, t.WidestFirst(), gfniPanelOf(p)}
}

// gfniPanelOf returns the panels of a packing; nil where there are none.
func gfniPanelOf(p matrix.Packing) *gfniPanel {
	switch write := gfniWriters[p]; p {
	case matrix.Q4, matrix.Q8:
		return &gfniPanel{25, write, 1280, gfniPanels["Bytes"]}
	case matrix.FP4:
		return &gfniPanel{10, write, 1280, gfniPanels["Bytes"]}
	case matrix.Q4M, matrix.Q41:
		return &gfniPanel{13, write, 1408, gfniPanels["Least"]}
	case matrix.Q6:
		return &gfniPanel{10, write, 1408, gfniPanels["Q6"]}
	}
	return nil
}

// add adds groups [gLo, gHi) of bands s and s+1 and two tokens or more.
func (g *gfniTiles) add(q *product, scratch *bands.Scratch, y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	f, lda := q.f, x.GroupStride()
	if g.panel != nil && tEnd-t >= g.panel.from {
		g.panel.add(q, scratch.Panel, y, ld, s, x, t, tEnd, gLo, gHi)
		return
	}
	for t < tEnd {
		tile, n := g.tiles.Next(tEnd - t)
		per := 1
		if n <= g.pair {
			per = 2
		}
		rec := x.Groups(f.limit).Records()[t*lda+gLo*acts.RecordBytes:]
		_ = rec[(n-1)*lda+(gHi-gLo)*acts.RecordBytes-1]
		for b := 0; b < 2; b += per {
			codes, scales := bandOf(q.w, s+b)
			_, last := bandOf(q.w, s+b+per-1)
			codes, scales = codes[gLo*f.codeBytes:gHi*f.codeBytes], scales[gLo/f.unit*f.unitBytes:]
			_, _ = last[gHi/f.unit*f.unitBytes-1], y[(n-1)*ld+(b+per)*bands.Rows-1]
			// The same share of the bands two further on.
			next := uintptr(unsafe.Pointer(unsafe.SliceData(codes))) - uintptr(gLo*f.codeBytes) + uintptr(2*q.BandBytes()+per*gLo*(f.codeBytes+f.unitBytes/f.unit))
			tile(&y[b*bands.Rows], ld, &codes[0], &scales[0], q.BandBytes(), &rec[0], lda, gHi-gLo, next)
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

// add adds groups [gLo, gHi) of bands s and s+1 by way of panels.
func (p *gfniPanel) add(q *product, panel []byte, y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	f, lda := q.f, x.GroupStride()
	codes, scales := bandOf(q.w, s)
	_, last := bandOf(q.w, s+1)
	_ = last[gHi/f.unit*f.unitBytes-1]
	// The same codes of the next two bands, one after the other, a share in each group of each tile.
	next := [2]uintptr{uintptr(unsafe.Pointer(unsafe.SliceData(codes))) + uintptr(2*q.BandBytes()+gLo*f.codeBytes)}
	next[1] = next[0] + uintptr(q.BandBytes())
	_, widest := p.tiles.Next(tEnd - t)
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
			tile, tokens := p.tiles.Next(tEnd - i)
			rec := x.Groups(f.limit).Records()[i*lda+lo*acts.RecordBytes:]
			_, _ = y[(tokens-1)*ld+2*bands.Rows-1], rec[(tokens-1)*lda+n*acts.RecordBytes-1]
			tile(&y[0], ld, &panel[0], &rec[0], lda, n, fetch, lines)
			if fetch += uintptr(64 * lines * n); fetch >= end {
				fetch, end = next[1], next[1]+uintptr((gHi-gLo)*f.codeBytes)
			}
			if i += tokens; i < tEnd {
				y = y[tokens*ld:]
			}
		}
	}
}
