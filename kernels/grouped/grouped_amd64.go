//go:build amd64 && !purego

package grouped

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/choice"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// tileFunc adds to y[tokens][16·bands] the products of some groups. One of
// a single band may prefetch as many bytes stride further on.
type tileFunc func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int)

// streamTile adds to y[16·bands] the products of some groups with one token
// and prefetches as many bytes from next on, which need not be memory.
type streamTile func(y *float32, codes, scales *byte, stride int, acts *byte, groups int, next uintptr)

// pairTile is a tileFunc of two bands that prefetches as many bytes from next on,
// which need not be memory.
type pairTile func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int, next uintptr)

// panelTile adds to y[tokens][16] the products of the groups of a panel.
type panelTile func(y *float32, ld int, panel, acts *byte, lda int, fetch *byte, ahead, lines, groups int)

// tileSet are the kernels of one packing and instruction set, the i-th
// of direct for i+1 tokens.
type tileSet struct {
	one     streamTile        // one token
	bands   int               // of one
	nibbles bool              // one reads nibble records
	direct  []tileFunc        // one band
	pair    []pairTile        // two bands, i+2 tokens for the i-th; nil: one by one
	gfni    *gfniTiles        // instead of pair at some widths; nil: there are none
	ports   [len(widths)]bool // which of widths gfni multiplies
	panel   *panelTiles       // nil where unfolding never pays
	lookup  *lookupTile       // nil where there is none
	quads   quadTile          // of two bands, in place of one too; nil: there is none
	halves  *halfTiles        // in place of all these, but for bands, where codes have levels; else nil
}

// panelFrom is the least number of tokens of a tile over a panel.
const panelFrom = 3

// panelFetchers tiles over a panel, where there are several, prefetch the codes
// of another one. To let each prefetch a share was slower from memory.
const panelFetchers = 2

// panelTiles multiply groups that write unfolds first. _gen/grouped/panel.go
// states what a panel is.
type panelTiles struct {
	from  int // tokens from which the faster products outweigh the unfolding, 5 at least
	write func(dst, codes, scales *byte, ahead, groups int)
	group int         // bytes of a group
	mixed bool        // tiles read mixed records
	tiles []panelTile // the i-th for panelFrom+i tokens
}

var avx2Tiles = map[matrix.Packing]tileSet{
	matrix.Q4: {one: groupedQ4AVX2x2x1, bands: 2, direct: []tileFunc{groupedQ4AVX2x1x1, groupedQ4AVX2x1x2, groupedQ4AVX2x1x3, groupedQ4AVX2x1x4},
		panel: &panelTiles{24, panelQ4AVX2, 576, false, []panelTile{groupedQ4PanelAVX2x3, groupedQ4PanelAVX2x4}}},
	matrix.Q4M: {one: groupedQ4MAVX2x2x1, bands: 2, direct: []tileFunc{groupedQ4MAVX2x1x1, groupedQ4MAVX2x1x2, groupedQ4MAVX2x1x3, groupedQ4MAVX2x1x4},
		panel: &panelTiles{24, panelQ4MAVX2, 704, false, []panelTile{groupedQ4MPanelAVX2x3, groupedQ4MPanelAVX2x4}}},
	matrix.Q41: {one: groupedQ41AVX2x2x1, bands: 2, direct: []tileFunc{groupedQ41AVX2x1x1, groupedQ41AVX2x1x2, groupedQ41AVX2x1x3, groupedQ41AVX2x1x4},
		panel: &panelTiles{24, panelQ41AVX2, 640, false, []panelTile{groupedQ41PanelAVX2x3, groupedQ41PanelAVX2x4}}},
	matrix.Q6: {one: groupedQ6AVX2x2x1, bands: 2, direct: []tileFunc{groupedQ6AVX2x1x1, groupedQ6AVX2x1x2, groupedQ6AVX2x1x3, groupedQ6AVX2x1x4},
		panel: &panelTiles{5, panelQ6AVX2, 640, true, []panelTile{groupedQ6PanelAVX2x3, groupedQ6PanelAVX2x4, groupedQ6PanelAVX2x5, groupedQ6PanelAVX2x6}}},
	matrix.Q8: {one: groupedQ8AVX2x2x1, bands: 2, direct: []tileFunc{groupedQ8AVX2x1x1, groupedQ8AVX2x1x2, groupedQ8AVX2x1x3, groupedQ8AVX2x1x4,
		groupedQ8AVX2x1x5, groupedQ8AVX2x1x6, groupedQ8AVX2x1x7, groupedQ8AVX2x1x8}},
	matrix.FP4: {one: groupedFP4AVX2x2x1, bands: 2, direct: []tileFunc{groupedFP4AVX2x1x1, groupedFP4AVX2x1x2, groupedFP4AVX2x1x3, groupedFP4AVX2x1x4},
		panel: &panelTiles{24, panelFP4AVX2, 576, false, []panelTile{groupedFP4PanelAVX2x3, groupedFP4PanelAVX2x4}}},
}

var avx512Tiles = map[matrix.Packing]tileSet{
	matrix.Q4: {one: groupedQ4AVX512x4x1, bands: 4, direct: []tileFunc{groupedQ4AVX512x1x1, groupedQ4AVX512x1x2, groupedQ4AVX512x1x3, groupedQ4AVX512x1x4},
		pair: []pairTile{groupedQ4AVX512x2x2, groupedQ4AVX512x2x3, groupedQ4AVX512x2x4, groupedQ4AVX512x2x5, groupedQ4AVX512x2x6}},
	matrix.Q4M: {one: groupedQ4MAVX512x4x1, bands: 4, direct: []tileFunc{groupedQ4MAVX512x1x1, groupedQ4MAVX512x1x2, groupedQ4MAVX512x1x3, groupedQ4MAVX512x1x4},
		pair: []pairTile{groupedQ4MAVX512x2x2, groupedQ4MAVX512x2x3, groupedQ4MAVX512x2x4, groupedQ4MAVX512x2x5, groupedQ4MAVX512x2x6}},
	matrix.Q41: {one: groupedQ41AVX512x4x1, bands: 4, direct: []tileFunc{groupedQ41AVX512x1x1, groupedQ41AVX512x1x2, groupedQ41AVX512x1x3, groupedQ41AVX512x1x4},
		pair: []pairTile{groupedQ41AVX512x2x2, groupedQ41AVX512x2x3, groupedQ41AVX512x2x4, groupedQ41AVX512x2x5, groupedQ41AVX512x2x6}},
	matrix.Q6: {one: groupedQ6AVX512x4x1, bands: 4, direct: []tileFunc{groupedQ6AVX512x1x1, groupedQ6AVX512x1x2, groupedQ6AVX512x1x3, groupedQ6AVX512x1x4},
		pair: []pairTile{groupedQ6AVX512x2x2, groupedQ6AVX512x2x3, groupedQ6AVX512x2x4, groupedQ6AVX512x2x5, groupedQ6AVX512x2x6}},
	matrix.Q8: {one: groupedQ8AVX512x4x1, bands: 4, direct: []tileFunc{groupedQ8AVX512x1x1, groupedQ8AVX512x1x2, groupedQ8AVX512x1x3, groupedQ8AVX512x1x4},
		pair: []pairTile{groupedQ8AVX512x2x2, groupedQ8AVX512x2x3, groupedQ8AVX512x2x4, groupedQ8AVX512x2x5, groupedQ8AVX512x2x6}},
	matrix.FP4: {one: groupedFP4AVX512x4x1, bands: 4, direct: []tileFunc{groupedFP4AVX512x1x1, groupedFP4AVX512x1x2, groupedFP4AVX512x1x3, groupedFP4AVX512x1x4},
		pair: []pairTile{groupedFP4AVX512x2x2, groupedFP4AVX512x2x3, groupedFP4AVX512x2x4, groupedFP4AVX512x2x5, groupedFP4AVX512x2x6}},
}

// tilesFor returns the kernels that this machine multiplies w with in an instruction set.
func tilesFor(i cpu.ISA, w *matrix.Matrix) tileSet {
	p := w.Packing
	switch {
	case levelRoutines[p].one != nil:
		return levelTilesOf(i, p, w.Levels)
	case formats[p].halves:
		return halfTilesOf(i, p, w.Levels)
	}
	if i != cpu.AVX512 {
		return tilesOf(i, p)
	}
	rules, _ := Choice(p)
	return tilesBy(rules, p)
}

// tilesBy returns the tiles of AVX512 that rules name.
func tilesBy(rules choice.Rules, p matrix.Packing) tileSet {
	t := tilesOf(cpu.AVX512, p)
	g := gfniAVX512[p]
	if g == nil {
		return t
	}
	t.gfni = g
	for i, w := range widths {
		t.ports[i] = rules.For(w.From) == GFNI
	}
	if t.ports[0] && g.one != nil {
		t.one = g.one
	}
	return t
}

// forPorts returns the tiles for two ports if they multiply n tokens; else nil.
func (t *tileSet) forPorts(n int) *gfniTiles {
	if t.gfni == nil || !t.ports[widthOf(n)] {
		return nil
	}
	return t.gfni
}

// widthOf returns which of widths n tokens have.
func widthOf(n int) int {
	i := 0
	for i+1 < len(widths) && n >= widths[i+1].From {
		i++
	}
	return i
}

// tilesOf returns the tiles that every processor with the instruction set can run.
func tilesOf(i cpu.ISA, p matrix.Packing) tileSet {
	if t, ok := lowTiles[i][p]; ok {
		return t
	}
	switch i {
	case cpu.AVX2:
		return avx2Tiles[p]
	case cpu.AVXVNNI:
		return avxvnniTiles[p]
	case cpu.AVX512:
		return avx512Tiles[p]
	}
	return tileSet{}
}

// Prepare quantises the rows of x in groups.
func (q *kernel) Prepare(p *pool.Pool, x *acts.Rows) {
	q.quantise(p, x)
	if h := q.tiles.halves; h != nil {
		wide := h.panel != nil && h.panel.wide && x.N() >= halfPanelFrom
		if wide {
			x.MakeWide(p)
		}
		if !wide || (x.N()-1)%tileTokens < halfPanelFrom-1 { // some are not multiplied by panels
			x.MakeHalves(p, q.f.limit)
		}
	}
	if panel := q.tiles.panel; panel != nil && panel.mixed && x.N() >= panel.from {
		x.MakeMixed(p, q.f.limit)
	}
	if q.tiles.nibbles && x.N() == 1 {
		x.MakeNibbles()
	}
	if from := bands.Looked(q, x.N()); q.tiles.quads != nil && from < x.N() {
		x.MakeQuads(p, from)
	}
	if l := q.tiles.lookup; l != nil && x.N() >= l.tokens {
		x.MakeGroupLanes(p, l.tokens)
	}
}

// Add adds the products of groups [kLo/32, kHi/32).
func (q *kernel) Add(scratch *bands.Scratch, y []float32, ld, s, n int, x *acts.Rows, t, tEnd, kLo, kHi int) {
	gLo, gHi := kLo/acts.GroupCols, kHi/acts.GroupCols
	if q.tiles.halves != nil {
		q.addHalves(scratch, y, ld, s, n, x, t, tEnd, gLo, gHi)
		return
	}
	gfni := q.tiles.forPorts(x.N())
	for i := 0; i < n; {
		if q.tiles.quads != nil && n-i >= 2 {
			q.addQuads(scratch, y[i*bands.Rows:], ld, s+i, x, t, tEnd, gLo, gHi)
			i += 2
			continue
		}
		if gfni != nil && n-i >= 2 && tEnd-t >= 2 {
			q.addGFNI(scratch, gfni, y[i*bands.Rows:], ld, s+i, x, t, tEnd, gLo, gHi)
			i += 2
			continue
		}
		if q.tiles.pair != nil && n-i >= 2 && tEnd-t >= 2 {
			q.addPair(y[i*bands.Rows:], ld, s+i, x, t, tEnd, gLo, gHi)
			i += 2
			continue
		}
		q.addBand(scratch, y[i*bands.Rows:], ld, s+i, x, t, tEnd, gLo, gHi)
		i++
	}
}

// addPair adds groups [gLo, gHi) of bands s and s+1 and two tokens or more.
func (q *kernel) addPair(y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	f, lda := q.f, x.GroupStride()
	codes, scales := bandOf(q.w, s)
	_, last := bandOf(q.w, s+1)
	codes, scales = codes[gLo*f.codeBytes:gHi*f.codeBytes], scales[gLo/f.unit*f.unitBytes:]
	_ = last[gHi/f.unit*f.unitBytes-1]
	// The same share of the next two bands: this one's at first, and what is there already afterwards.
	here := uintptr(unsafe.Pointer(unsafe.SliceData(codes)))
	next := here - uintptr(gLo*f.codeBytes) + uintptr(2*q.BandBytes()+2*gLo*(f.codeBytes+f.unitBytes/f.unit))
	for t < tEnd {
		n := cpu.TileWidth(tEnd-t, len(q.tiles.pair)+1) // two at least, for there are two or more
		rec := x.Groups(q.f.limit)[t*lda+gLo*acts.RecordBytes:]
		_, _ = y[(n-1)*ld+2*bands.Rows-1], rec[(n-1)*lda+(gHi-gLo)*acts.RecordBytes-1]
		q.tiles.pair[n-2](&y[0], ld, &codes[0], &scales[0], q.BandBytes(), &rec[0], lda, gHi-gLo, next)
		next = here
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}

// StreamBands returns the number of bands of a tile for one token.
func (q *kernel) StreamBands() int { return q.tiles.bands }

// streamTokens is the number of tokens up to which memory is the limit.
const streamTokens = 4

// Streams reports whether products of n tokens stream. Tiles for two ports of 512 bits wait for memory
// with many tokens too, unless these fill tiles of tables.
func (q *kernel) Streams(n int) bool {
	if n <= streamTokens {
		return true
	}
	return q.tiles.forPorts(n) != nil && n <= tileTokens && (q.tiles.lookup == nil || n < q.tiles.lookup.tokens)
}

// Stream multiplies such a tile.
func (q *kernel) Stream(scratch *bands.Scratch, y []float32, s int, x *acts.Rows, next uintptr) {
	if q.tiles.halves != nil {
		q.streamHalves(scratch, y, s, x, next)
		return
	}
	if q.tiles.quads != nil {
		q.streamQuads(scratch, y, s, x, next)
		return
	}
	codes, scales := bandOf(q.w, s)
	_, _ = bandOf(q.w, s+q.tiles.bands-1)
	_ = y[q.tiles.bands*bands.Rows-1]
	groups := q.w.Cols / acts.GroupCols
	rec := x.Groups(q.f.limit)[:groups*acts.RecordBytes]
	if q.tiles.nibbles {
		rec = x.Nibbles()[:groups*acts.NibbleBytes]
	}
	q.tiles.one(&y[0], &codes[0], &scales[0], q.BandBytes(), &rec[0], groups, next)
}

func (q *kernel) addBand(scratch *bands.Scratch, y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	switch {
	case q.tiles.direct == nil:
		q.addGeneric(y, ld, s, x, t, tEnd, gLo, gHi)
	case q.tiles.panel != nil && tEnd-t >= q.tiles.panel.from:
		for g := gLo; g < gHi; g += bands.PanelGroups {
			q.addPanel(scratch.Panel, y, ld, s, x, t, tEnd, g, min(g+bands.PanelGroups, gHi))
		}
	default:
		q.addTiles(y, ld, s, x, t, tEnd, gLo, gHi)
	}
}

// addPanel adds groups [gLo, gHi) by way of a panel.
func (q *kernel) addPanel(panel []byte, y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	f, tiles, n := q.f, q.tiles.panel, gHi-gLo
	codes, scales := bandOf(q.w, s)
	codes = codes[gLo*f.codeBytes : gHi*f.codeBytes]
	scales = scales[gLo/f.unit*f.unitBytes : gHi/f.unit*f.unitBytes]
	panel = panel[:n*tiles.group]
	tiles.write(&panel[0], &codes[0], &scales[0], q.BandBytes(), n)
	lda, recs := x.GroupStride(), x.Groups(q.f.limit)
	if tiles.mixed {
		recs = x.Mixed(q.f.limit)
	}
	widest := panelFrom - 1 + len(tiles.tiles)
	fetch, ahead := codes, q.BandBytes() // the same groups of the next band
	lines := f.codeBytes / 64            // a group
	if tEnd-t > widest {
		lines = max(1, lines/panelFetchers)
	}
	for t < tEnd {
		tokens := cpu.TileWidth(tEnd-t, widest)
		rec := recs[t*lda+gLo*acts.RecordBytes:]
		_, _ = y[(tokens-1)*ld+bands.Rows-1], rec[(tokens-1)*lda+n*acts.RecordBytes-1]
		tiles.tiles[tokens-panelFrom](&y[0], ld, &panel[0], &rec[0], lda, &fetch[0], ahead, lines, n)
		if ahead += 64 * lines * n; ahead >= q.BandBytes()+len(codes) {
			fetch, ahead, lines = panel, 0, 1 // all is on its way
		}
		if t += tokens; t < tEnd {
			y = y[tokens*ld:]
		}
	}
}

// addTiles adds groups [gLo, gHi) tile by tile.
func (q *kernel) addTiles(y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	f, tiles := q.f, q.tiles.direct
	codes, scales := bandOf(q.w, s)
	codes = codes[gLo*f.codeBytes : gHi*f.codeBytes]
	scales = scales[gLo/f.unit*f.unitBytes : gHi/f.unit*f.unitBytes]
	lda := x.GroupStride()
	next := q.BandBytes() + gLo*f.unitBytes/f.unit // the same part of the next band, scales included
	for t < tEnd {
		n := cpu.TileWidth(tEnd-t, len(tiles))
		rec := x.Groups(q.f.limit)[t*lda+gLo*acts.RecordBytes:]
		_, _ = y[(n-1)*ld+bands.Rows-1], rec[(n-1)*lda+(gHi-gLo)*acts.RecordBytes-1]
		tiles[n-1](&y[0], ld, &codes[0], &scales[0], next, &rec[0], lda, gHi-gLo)
		next = 0 // is there already
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}
