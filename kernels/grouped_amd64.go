//go:build amd64 && !purego

package kernels

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// groupedTile adds to y[tokens][16·bands] the products of some groups. One of
// a single band may prefetch as many bytes stride further on.
type groupedTile func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int)

// streamTile adds to y[16·bands] the products of some groups with one token
// and prefetches as many bytes from next on, which need not be memory.
type streamTile func(y *float32, codes, scales *byte, stride int, acts *byte, groups int, next uintptr)

// panelTile adds to y[tokens][16] the products of the groups of a panel.
type panelTile func(y *float32, ld int, panel, acts *byte, lda int, fetch *byte, ahead, lines, groups int)

// groupedTiles are the kernels of one packing and instruction set, the i-th
// of direct for i+1 tokens.
type groupedTiles struct {
	one    streamTile    // one token
	bands  int           // of one
	direct []groupedTile // one band
	pair   []groupedTile // two bands, i+2 tokens for the i-th; nil: one by one
	panel  *panelTiles   // nil where unfolding never pays
}

// panelFrom is the least number of tokens of a tile over a panel.
const panelFrom = 3

// panelFetchers tiles over a panel, where there are several, prefetch the codes
// of another one. To let each prefetch a share was slower from memory.
const panelFetchers = 2

// panelTiles multiply groups that write unfolds first. _gen/grouped_panel.go
// states what a panel is.
type panelTiles struct {
	from  int // tokens from which the faster products outweigh the unfolding, 5 at least
	write func(dst, codes, scales *byte, ahead, groups int)
	group int         // bytes of a group
	mixed bool        // tiles read mixed records
	tiles []panelTile // the i-th for panelFrom+i tokens
}

var groupedAVX2 = map[Packing]groupedTiles{
	Q4: {groupedQ4AVX2x2x1, 2, []groupedTile{groupedQ4AVX2x1x1, groupedQ4AVX2x1x2, groupedQ4AVX2x1x3, groupedQ4AVX2x1x4},
		nil, &panelTiles{24, panelQ4AVX2, 576, false, []panelTile{groupedQ4PanelAVX2x3, groupedQ4PanelAVX2x4}}},
	Q4M: {groupedQ4MAVX2x2x1, 2, []groupedTile{groupedQ4MAVX2x1x1, groupedQ4MAVX2x1x2, groupedQ4MAVX2x1x3, groupedQ4MAVX2x1x4},
		nil, &panelTiles{24, panelQ4MAVX2, 704, false, []panelTile{groupedQ4MPanelAVX2x3, groupedQ4MPanelAVX2x4}}},
	Q6: {groupedQ6AVX2x2x1, 2, []groupedTile{groupedQ6AVX2x1x1, groupedQ6AVX2x1x2, groupedQ6AVX2x1x3, groupedQ6AVX2x1x4},
		nil, &panelTiles{5, panelQ6AVX2, 640, true, []panelTile{groupedQ6PanelAVX2x3, groupedQ6PanelAVX2x4, groupedQ6PanelAVX2x5, groupedQ6PanelAVX2x6}}},
	Q8: {groupedQ8AVX2x2x1, 2, []groupedTile{groupedQ8AVX2x1x1, groupedQ8AVX2x1x2, groupedQ8AVX2x1x3, groupedQ8AVX2x1x4},
		nil, &panelTiles{12, panelQ8AVX2, MaxPanelGroup, false, []panelTile{groupedQ8PanelAVX2x3, groupedQ8PanelAVX2x4}}},
}

var groupedAVX512 = map[Packing]groupedTiles{
	Q4: {one: groupedQ4AVX512x4x1, bands: 4, direct: []groupedTile{groupedQ4AVX512x1x1, groupedQ4AVX512x1x2, groupedQ4AVX512x1x3, groupedQ4AVX512x1x4, groupedQ4AVX512x1x5, groupedQ4AVX512x1x6, groupedQ4AVX512x1x7, groupedQ4AVX512x1x8},
		pair: []groupedTile{groupedQ4AVX512x2x2, groupedQ4AVX512x2x3, groupedQ4AVX512x2x4, groupedQ4AVX512x2x5, groupedQ4AVX512x2x6}},
	Q4M: {one: groupedQ4MAVX512x4x1, bands: 4, direct: []groupedTile{groupedQ4MAVX512x1x1, groupedQ4MAVX512x1x2, groupedQ4MAVX512x1x3, groupedQ4MAVX512x1x4, groupedQ4MAVX512x1x5, groupedQ4MAVX512x1x6, groupedQ4MAVX512x1x7, groupedQ4MAVX512x1x8},
		pair: []groupedTile{groupedQ4MAVX512x2x2, groupedQ4MAVX512x2x3, groupedQ4MAVX512x2x4, groupedQ4MAVX512x2x5, groupedQ4MAVX512x2x6}},
	Q6: {one: groupedQ6AVX512x4x1, bands: 4, direct: []groupedTile{groupedQ6AVX512x1x1, groupedQ6AVX512x1x2, groupedQ6AVX512x1x3, groupedQ6AVX512x1x4, groupedQ6AVX512x1x5, groupedQ6AVX512x1x6, groupedQ6AVX512x1x7, groupedQ6AVX512x1x8},
		pair: []groupedTile{groupedQ6AVX512x2x2, groupedQ6AVX512x2x3, groupedQ6AVX512x2x4, groupedQ6AVX512x2x5, groupedQ6AVX512x2x6}},
	Q8: {one: groupedQ8AVX512x4x1, bands: 4, direct: []groupedTile{groupedQ8AVX512x1x1, groupedQ8AVX512x1x2, groupedQ8AVX512x1x3, groupedQ8AVX512x1x4, groupedQ8AVX512x1x5, groupedQ8AVX512x1x6, groupedQ8AVX512x1x7, groupedQ8AVX512x1x8},
		pair: []groupedTile{groupedQ8AVX512x2x2, groupedQ8AVX512x2x3, groupedQ8AVX512x2x4, groupedQ8AVX512x2x5, groupedQ8AVX512x2x6}},
}

func groupedTilesFor(i cpu.ISA, p Packing) groupedTiles {
	switch i {
	case cpu.AVX2:
		return groupedAVX2[p]
	case cpu.AVXVNNI:
		return groupedAVXVNNI[p]
	case cpu.AVX512:
		return groupedAVX512[p]
	}
	return groupedTiles{}
}

// Prepare quantises the rows of x in groups.
func (q *groupedKernel) Prepare(p *pool.Pool, x *Rows) {
	x.MakeGroups(p)
	if panel := q.tiles.panel; panel != nil && panel.mixed && x.N() >= panel.from {
		x.MakeMixed(p)
	}
}

// Add adds the products of groups [kLo/32, kHi/32).
func (q *groupedKernel) Add(scratch *Scratch, y []float32, ld, s, n int, x *Rows, t, tEnd, kLo, kHi int) {
	gLo, gHi := kLo/GroupCols, kHi/GroupCols
	for i := 0; i < n; {
		if q.tiles.pair != nil && n-i >= 2 && tEnd-t >= 2 {
			q.addPair(y[i*bandRows:], ld, s+i, x, t, tEnd, gLo, gHi)
			i += 2
			continue
		}
		q.addBand(scratch, y[i*bandRows:], ld, s+i, x, t, tEnd, gLo, gHi)
		i++
	}
}

// addPair adds groups [gLo, gHi) of bands s and s+1 and two tokens or more.
func (q *groupedKernel) addPair(y []float32, ld, s int, x *Rows, t, tEnd, gLo, gHi int) {
	f, lda := q.f, x.GroupStride()
	codes, scales := bandOf(q.w, s)
	_, last := bandOf(q.w, s+1)
	codes, scales = codes[gLo*f.codeBytes:gHi*f.codeBytes], scales[gLo/f.unit*f.unitBytes:]
	_ = last[gHi/f.unit*f.unitBytes-1]
	for t < tEnd {
		n := cpu.TileWidth(tEnd-t, len(q.tiles.pair)+1) // two at least, for there are two or more
		acts := x.Groups()[t*lda+gLo*RecordBytes:]
		_, _ = y[(n-1)*ld+2*bandRows-1], acts[(n-1)*lda+(gHi-gLo)*RecordBytes-1]
		q.tiles.pair[n-2](&y[0], ld, &codes[0], &scales[0], q.BandBytes(), &acts[0], lda, gHi-gLo)
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}

// StreamBands is the number of bands of a tile for one token.
func (q *groupedKernel) StreamBands() int { return q.tiles.bands }

// Stream multiplies such a tile.
func (q *groupedKernel) Stream(y []float32, s int, x *Rows, next uintptr) {
	codes, scales := bandOf(q.w, s)
	_, _ = bandOf(q.w, s+q.tiles.bands-1)
	_ = y[q.tiles.bands*bandRows-1]
	groups := q.w.Cols / GroupCols
	acts := x.Groups()[:groups*RecordBytes]
	q.tiles.one(&y[0], &codes[0], &scales[0], q.BandBytes(), &acts[0], groups, next)
}

func (q *groupedKernel) addBand(scratch *Scratch, y []float32, ld, s int, x *Rows, t, tEnd, gLo, gHi int) {
	switch {
	case q.tiles.direct == nil:
		q.addGeneric(y, ld, s, x, t, tEnd, gLo, gHi)
	case q.tiles.panel != nil && tEnd-t >= q.tiles.panel.from:
		for g := gLo; g < gHi; g += PanelGroups {
			q.addPanel(scratch.Panel, y, ld, s, x, t, tEnd, g, min(g+PanelGroups, gHi))
		}
	default:
		q.addTiles(y, ld, s, x, t, tEnd, gLo, gHi)
	}
}

// addPanel adds groups [gLo, gHi) by way of a panel.
func (q *groupedKernel) addPanel(panel []byte, y []float32, ld, s int, x *Rows, t, tEnd, gLo, gHi int) {
	f, tiles, n := q.f, q.tiles.panel, gHi-gLo
	codes, scales := bandOf(q.w, s)
	codes = codes[gLo*f.codeBytes : gHi*f.codeBytes]
	scales = scales[gLo/f.unit*f.unitBytes : gHi/f.unit*f.unitBytes]
	panel = panel[:n*tiles.group]
	tiles.write(&panel[0], &codes[0], &scales[0], q.BandBytes(), n)
	lda, recs := x.GroupStride(), x.Groups()
	if tiles.mixed {
		recs = x.Mixed()
	}
	widest := panelFrom - 1 + len(tiles.tiles)
	fetch, ahead := codes, q.BandBytes() // the same groups of the next band
	lines := f.codeBytes / 64            // a group
	if tEnd-t > widest {
		lines /= panelFetchers
	}
	for t < tEnd {
		tokens := cpu.TileWidth(tEnd-t, widest)
		acts := recs[t*lda+gLo*RecordBytes:]
		_, _ = y[(tokens-1)*ld+bandRows-1], acts[(tokens-1)*lda+n*RecordBytes-1]
		tiles.tiles[tokens-panelFrom](&y[0], ld, &panel[0], &acts[0], lda, &fetch[0], ahead, lines, n)
		if ahead += 64 * lines * n; ahead >= q.BandBytes()+len(codes) {
			fetch, ahead, lines = panel, 0, 1 // all is on its way
		}
		if t += tokens; t < tEnd {
			y = y[tokens*ld:]
		}
	}
}

// addTiles adds groups [gLo, gHi) tile by tile.
func (q *groupedKernel) addTiles(y []float32, ld, s int, x *Rows, t, tEnd, gLo, gHi int) {
	f, tiles := q.f, q.tiles.direct
	codes, scales := bandOf(q.w, s)
	codes = codes[gLo*f.codeBytes : gHi*f.codeBytes]
	scales = scales[gLo/f.unit*f.unitBytes : gHi/f.unit*f.unitBytes]
	lda := x.GroupStride()
	next := q.BandBytes() + gLo*f.unitBytes/f.unit // the same part of the next band, scales included
	for t < tEnd {
		n := cpu.TileWidth(tEnd-t, len(tiles))
		acts := x.Groups()[t*lda+gLo*RecordBytes:]
		_, _ = y[(n-1)*ld+bandRows-1], acts[(n-1)*lda+(gHi-gLo)*RecordBytes-1]
		tiles[n-1](&y[0], ld, &codes[0], &scales[0], next, &acts[0], lda, gHi-gLo)
		next = 0 // is there already
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}
