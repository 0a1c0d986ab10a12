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

// Routines of tiles add products to y; how many tokens and bands they multiply is their place in the tables of
// routines_amd64.go. next is where they prefetch as many bytes as they read, which need not be memory.
type (
	// tileFunc adds to y[tokens][16] the products of some groups of a band, and may prefetch stride bytes further on.
	tileFunc func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int)
	// streamTile adds to y[16·bands] the products of some groups with one token.
	streamTile func(y *float32, codes, scales *byte, stride int, acts *byte, groups int, next uintptr)
	// pairTile adds to y[tokens][32] the products of some groups of two bands.
	pairTile func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int, next uintptr)
	// panelTile adds to y[tokens][16] the products of the groups of a panel.
	panelTile func(y *float32, ld int, panel, acts *byte, lda int, fetch *byte, ahead, lines, groups int)
	// panelWriter unfolds some groups of a band.
	panelWriter func(dst, codes, scales *byte, ahead, groups int)
)

// family names the routines of an instruction set; gfni names AVX-512 for two ports of 512 bits.
type family uint8

const (
	portable family = iota
	avx2
	avx2Small // of levels of five bits
	avxvnni
	avx512
	gfni
)

// familyOf returns the family that every processor with the instruction set can run.
func familyOf(i cpu.ISA) family {
	return map[cpu.ISA]family{cpu.AVX2: avx2, cpu.AVXVNNI: avxvnni, cpu.AVX512: avx512}[i]
}

// streamBands returns the number of bands of a tile for one token.
func (f family) streamBands() int {
	switch f {
	case portable:
		return 0
	case avx512, gfni:
		return 4
	}
	return 2
}

// tileSet are the kernels of one packing and instruction set.
type tileSet struct {
	one     streamTile            // one token
	bands   int                   // of one
	nibbles bool                  // one reads nibble records
	direct  bands.Tiles[tileFunc] // one band; none: pair multiplies it too
	pair    bands.Tiles[pairTile] // two bands, two tokens at least; none: one by one
	gfni    *gfniTiles            // instead of pair at some widths; nil: there are none
	ports   [len(widths)]bool     // which of widths gfni multiplies
	panel   *panelTiles           // nil where unfolding never pays
	lookup  *lookupTile           // nil where there is none
	quads   quadTile              // of two bands, in place of one too; nil: there is none
}

// panelFetchers tiles over a panel, where there are several, prefetch the codes
// of another one. To let each prefetch a share was slower from memory.
const panelFetchers = 2

// panelTiles multiply groups that write unfolds first. _gen/grouped/panel.go
// states what a panel is.
type panelTiles struct {
	from  int // tokens from which the faster products outweigh the unfolding
	write panelWriter
	group int  // bytes of a group
	mixed bool // tiles read mixed records
	tiles bands.Tiles[panelTile]
}

// panelOf returns AVX2's panels of a packing; nil where unfolding never pays.
func panelOf(p matrix.Packing) *panelTiles {
	group, ok := map[matrix.Packing]int{matrix.Q4: 576, matrix.FP4: 576, matrix.Q4M: 704, matrix.Q41: 640, matrix.Q6: 640}[p]
	if !ok {
		return nil
	}
	t := &panelTiles{from: 24, write: writers[p], group: group, tiles: panels[p]}
	if p == matrix.Q6 {
		t.from, t.mixed = 5, true
	}
	return t
}

// add adds groups [gLo, gHi) of band s by way of a panel.
func (p *panelTiles) add(q *product, panel []byte, y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	f, n := q.f, gHi-gLo
	codes, scales := bandOf(q.w, s)
	codes = codes[gLo*f.codeBytes : gHi*f.codeBytes]
	scales = scales[gLo/f.unit*f.unitBytes : gHi/f.unit*f.unitBytes]
	panel = panel[:n*p.group]
	p.write(&panel[0], &codes[0], &scales[0], q.BandBytes(), n)
	lda, recs := x.GroupStride(), x.Groups(q.f.limit).Records()
	if p.mixed {
		recs = x.Groups(q.f.limit).Mixed()
	}
	fetch, ahead := codes, q.BandBytes() // the same groups of the next band
	lines := f.codeBytes / 64            // a group
	if _, tokens := p.tiles.Next(tEnd - t); tokens < tEnd-t {
		lines = max(1, lines/panelFetchers)
	}
	for t < tEnd {
		tile, tokens := p.tiles.Next(tEnd - t)
		rec := recs[t*lda+gLo*acts.RecordBytes:]
		_, _ = y[(tokens-1)*ld+bands.Rows-1], rec[(tokens-1)*lda+n*acts.RecordBytes-1]
		tile(&y[0], ld, &panel[0], &rec[0], lda, &fetch[0], ahead, lines, n)
		if ahead += 64 * lines * n; ahead >= q.BandBytes()+len(codes) {
			fetch, ahead, lines = panel, 0, 1 // all is on its way
		}
		if t += tokens; t < tEnd {
			y = y[tokens*ld:]
		}
	}
}

// lookups are the tiles of tables, by family.
var lookups = map[family]*lookupTile{
	avx2:    {16, tablesQ1G128AVX2, lookupQ1G128AVX2, storeSums16AVX2},
	avxvnni: {16, tablesQ1G128AVX2, lookupQ1G128AVX2, storeSums16AVX2},
	avx512:  {32, tablesQ1G128AVX512, lookupQ1G128AVX512, storeSums32AVX2},
}

// kernelFor returns the kernel that this machine multiplies w with in an instruction set.
func kernelFor(i cpu.ISA, w *matrix.Matrix) bands.Kernel {
	q, f := &kernel{product: productOf(w)}, familyOf(i)
	switch p := w.Packing; {
	case i == cpu.Generic: // no tiles
	case levelStreams[avx2][p] != nil:
		q.tiles = levelTilesOf(f, p, w.Levels)
	case q.f.halves:
		return &halfKernel{q.product, f.streamBands(), halfTilesOf(f, p, w.Levels)}
	case i == cpu.AVX512:
		rules, _ := Choice(p)
		q.tiles = tilesBy(rules, p)
	default:
		q.tiles = tilesOf(f, p)
	}
	return q
}

// tilesBy returns the tiles of AVX512 that rules name.
func tilesBy(rules choice.Rules, p matrix.Packing) tileSet {
	t := tilesOf(avx512, p)
	t.gfni = gfniOf(p)
	if t.gfni == nil {
		return t
	}
	for i, w := range widths {
		t.ports[i] = rules.For(w.From) == GFNI
	}
	if t.ports[0] && t.gfni.one != nil {
		t.one = t.gfni.one
	}
	return t
}

// tilesOf returns the tiles that every processor with the instruction set can run.
func tilesOf(f family, p matrix.Packing) tileSet {
	if p == matrix.Q2G64 || p == matrix.Q2G128 {
		return unitTilesOf(f, formats[p].unit)
	}
	t := tileSet{one: streams[f][p], bands: f.streamBands(), direct: tiles[f][p], pair: pairs[f][p]}
	if f == avx2 {
		t.panel = panelOf(p)
	}
	if p == matrix.Q1G128 {
		t.lookup, t.nibbles = lookups[f], f == avx512
		if f == avx2 {
			t.quads = quadsQ1G128AVX2
		}
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

// Prepare quantises the rows of x in groups.
func (q *kernel) Prepare(p *pool.Pool, x *acts.Rows) {
	q.quantise(p, x)
	if panel := q.tiles.panel; panel != nil && panel.mixed && x.N() >= panel.from {
		x.Groups(q.f.limit).MakeMixed(p)
	}
	if q.tiles.nibbles && x.N() == 1 {
		x.Groups(acts.Unlimited).MakeNibbles()
	}
	if from := bands.Looked(q, x.N()); q.tiles.quads != nil && from < x.N() {
		x.Groups(acts.Unlimited).MakeQuads(p, from)
	}
	if l := q.tiles.lookup; l != nil && x.N() >= l.tokens {
		x.Groups(acts.Unlimited).MakeLanes(p, l.tokens)
	}
}

// Add adds the products of groups [kLo/32, kHi/32).
func (q *kernel) Add(scratch *bands.Scratch, y []float32, ld, s, n int, x *acts.Rows, t, tEnd, kLo, kHi int) {
	gLo, gHi := kLo/acts.GroupCols, kHi/acts.GroupCols
	gfni := q.tiles.forPorts(x.N())
	for i := 0; i < n; {
		if q.tiles.quads != nil && n-i >= 2 {
			q.tiles.quads.add(&q.product, scratch, y[i*bands.Rows:], ld, s+i, x, t, tEnd, gLo, gHi)
			i += 2
			continue
		}
		if gfni != nil && n-i >= 2 && tEnd-t >= 2 {
			gfni.add(&q.product, scratch, y[i*bands.Rows:], ld, s+i, x, t, tEnd, gLo, gHi)
			i += 2
			continue
		}
		if !q.tiles.pair.None() && n-i >= 2 && tEnd-t >= 2 {
			q.addPair(y[i*bands.Rows:], ld, s+i, x, t, tEnd, gLo, gHi)
			i += 2
			continue
		}
		if !q.tiles.pair.None() && q.tiles.direct.None() {
			take := min(2, n-i)
			q.addOdd(scratch, y[i*bands.Rows:], ld, s+i, take, x, t, tEnd, gLo, gHi)
			i += take
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
		tile, n := q.tiles.pair.Next(tEnd - t)
		rec := x.Groups(q.f.limit).Records()[t*lda+gLo*acts.RecordBytes:]
		_, _ = y[(n-1)*ld+2*bands.Rows-1], rec[(n-1)*lda+(gHi-gLo)*acts.RecordBytes-1]
		tile(&y[0], ld, &codes[0], &scales[0], q.BandBytes(), &rec[0], lda, gHi-gLo, next)
		next = here
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}

// addOdd adds groups [gLo, gHi) of an odd band, or of two bands and an odd token. Tiles multiply two of both:
// what is alone goes in twice, and its sums count once.
func (q *kernel) addOdd(scratch *bands.Scratch, y []float32, ld, s, take int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	const both = 2 * bands.Rows
	f, lda, stride := q.f, x.GroupStride(), (take-1)*q.BandBytes()
	codes, scales := bandOf(q.w, s)
	_, last := bandOf(q.w, s+take-1)
	codes, scales = codes[gLo*f.codeBytes:gHi*f.codeBytes], scales[gLo/f.unit*f.unitBytes:]
	_ = last[gHi/f.unit*f.unitBytes-1]
	for t < tEnd {
		tile, n := q.tiles.pair.Next(max(tEnd-t, 2))
		if tEnd-t == 1 {
			lda = 0
		}
		counts := min(n, tEnd-t)
		rec := x.Groups(f.limit).Records()[t*x.GroupStride()+gLo*acts.RecordBytes:]
		sums := scratch.Sums[:n*both]
		_ = rec[(n-1)*lda+(gHi-gLo)*acts.RecordBytes-1]
		for i := range counts {
			copy(sums[i*both:], y[i*ld:][:take*bands.Rows])
		}
		tile(&sums[0], both, &codes[0], &scales[0], stride, &rec[0], lda, gHi-gLo, uintptr(unsafe.Pointer(unsafe.SliceData(codes))))
		for i := range counts {
			copy(y[i*ld:][:take*bands.Rows], sums[i*both:])
		}
		if t += counts; t < tEnd {
			y = y[counts*ld:]
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
	if q.tiles.quads != nil {
		q.tiles.quads.multiply(&q.product, scratch, y, 0, s, x, 0, 1, 0, q.w.Cols/acts.GroupCols, next)
		return
	}
	codes, scales := bandOf(q.w, s)
	_, _ = bandOf(q.w, s+q.tiles.bands-1)
	_ = y[q.tiles.bands*bands.Rows-1]
	groups := q.w.Cols / acts.GroupCols
	rec := x.Groups(q.f.limit).Records()[:groups*acts.RecordBytes]
	if q.tiles.nibbles {
		rec = x.Groups(acts.Unlimited).Nibbles()[:groups*acts.NibbleBytes]
	}
	q.tiles.one(&y[0], &codes[0], &scales[0], q.BandBytes(), &rec[0], groups, next)
}

func (q *kernel) addBand(scratch *bands.Scratch, y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	switch {
	case q.tiles.direct.None():
		q.addGeneric(y, ld, s, x, t, tEnd, gLo, gHi)
	case q.tiles.panel != nil && tEnd-t >= q.tiles.panel.from:
		whole := t + q.tiles.panel.tiles.Most(tEnd-t)
		for g := gLo; g < gHi; g += bands.PanelGroups {
			q.tiles.panel.add(&q.product, scratch.Panel, y, ld, s, x, t, whole, g, min(g+bands.PanelGroups, gHi))
		}
		if whole < tEnd {
			q.addTiles(y[(whole-t)*ld:], ld, s, x, whole, tEnd, gLo, gHi)
		}
	default:
		q.addTiles(y, ld, s, x, t, tEnd, gLo, gHi)
	}
}

// addTiles adds groups [gLo, gHi) tile by tile.
func (q *kernel) addTiles(y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	f := q.f
	codes, scales := bandOf(q.w, s)
	codes = codes[gLo*f.codeBytes : gHi*f.codeBytes]
	scales = scales[gLo/f.unit*f.unitBytes : gHi/f.unit*f.unitBytes]
	lda := x.GroupStride()
	next := q.BandBytes() + gLo*f.unitBytes/f.unit // the same part of the next band, scales included
	for t < tEnd {
		tile, n := q.tiles.direct.Next(tEnd - t)
		rec := x.Groups(q.f.limit).Records()[t*lda+gLo*acts.RecordBytes:]
		_, _ = y[(n-1)*ld+bands.Rows-1], rec[(n-1)*lda+(gHi-gLo)*acts.RecordBytes-1]
		tile(&y[0], ld, &codes[0], &scales[0], next, &rec[0], lda, gHi-gLo)
		next = 0 // is there already
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}
