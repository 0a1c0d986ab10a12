//go:build amd64 && !purego

package grouped

import (
	"slices"
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// halfTile adds to y[tokens][16·bands] the products of some halves of groups, of codes in
// nibbles whose levels a table has, with half records.
type halfTile func(y *float32, ld int, codes *byte, stride int, scales *float32, levels *int8, acts *byte, lda, halves int)

// unfolding writes the scales of some groups of a band as float32, stride bytes from half to
// half, and prefetches some lines a group.
type unfolding func(d *float32, stride int, scales *byte, factor *float32, fetch uintptr, lines, groups int)

// halfWriter unfolds the levels of some halves of groups.
type halfWriter func(panel, codes *byte, levels *int8, halves int)

// halfKernel multiplies bands whose codes have levels, by halves of groups.
type halfKernel struct {
	product
	bands int // of a tile for one token
	tiles halfTileSet
}

// halfTileSet are the tiles of an instruction set, and what unfolds for them.
type halfTileSet struct {
	unfold unfolding
	one    bands.Tiles[halfTile] // one token, of several bands
	single bands.Tiles[halfTile] // one band; none: pair multiplies it too
	pair   bands.Tiles[halfTile] // two bands, two tokens at least; none: one by one
	panel  *halfPanel            // for halfPanelFrom tokens and more; nil: none
}

// halfPanel unfolds the levels of a band, and multiplies what is unfolded.
// _gen/grouped/halves_panel.go states what a panel is.
type halfPanel struct {
	write halfWriter
	half  int  // bytes of half a group, of which the last are the scales
	wide  bool // tiles read wide records, not records of halves
	tiles bands.Tiles[halfPanelTile]
}

// halfPanelTile adds to y[tokens][16] the products of some halves of a panel, and prefetches some
// lines a half.
type halfPanelTile func(y *float32, ld int, panel, acts *byte, lda int, fetch uintptr, lines, halves int)

// halfPanelFrom is the number of tokens from which unfolding pays: all that there are tiles for.
const halfPanelFrom = 3

// halfTilesOf returns the tiles of a packing with levels.
func halfTilesOf(f family, p matrix.Packing, levels *matrix.Levels) halfTileSet {
	h := halfTileSet{unfold: unfoldings[p]}
	if f == avx2 {
		h.panel = &halfPanel{half: 576, wide: true}
		if small(levels) {
			f, h.panel.half, h.panel.wide = avx2Small, 320, false
		}
		h.panel.write, h.panel.tiles = halfWriters[f], halfPanels[f]
	}
	h.one, h.single, h.pair = bands.TilesOf([]halfTile{1: halfStreams[f]}), halfTiles[f], halfPairs[f]
	return h
}

// small reports whether levels are of five bits, as signed numbers.
func small(levels *matrix.Levels) bool {
	return slices.Min(levels.Of[:]) >= -16 && slices.Max(levels.Of[:]) <= 15
}

// What a worker's panel holds: scales of some groups of some bands.
const (
	halfScaleBytes = 2 * bands.Rows * 4 // of a group
	halfBandGroups = 16
	halfLines      = 5 // of 64 bytes, which a group's codes and scales take
)

// Prepare quantises the rows of x in groups, and in halves of groups.
func (q *halfKernel) Prepare(p *pool.Pool, x *acts.Rows) {
	q.quantise(p, x)
	panel := q.tiles.panel
	wide, last := panel != nil && panel.wide && x.N() >= halfPanelFrom, (x.N()-1)%tileTokens+1
	if wide {
		x.Groups(acts.Unlimited).MakeWide(p)
	}
	if !wide || panel.tiles.Most(last) < last { // some are not multiplied by panels
		x.Groups(q.f.limit).MakeHalves(p)
	}
}

// StreamBands returns the number of bands of a tile for one token.
func (q *halfKernel) StreamBands() int { return q.bands }

// Streams reports whether products of n tokens stream.
func (q *halfKernel) Streams(n int) bool { return n <= streamTokens }

// Add adds the products of groups [kLo/32, kHi/32).
func (q *halfKernel) Add(scratch *bands.Scratch, y []float32, ld, s, n int, x *acts.Rows, t, tEnd, kLo, kHi int) {
	gLo, gHi := kLo/acts.GroupCols, kHi/acts.GroupCols
	for n > 0 {
		take, tiles := 1, q.tiles.single
		if !q.tiles.pair.None() {
			take, tiles = min(n, 2), q.tiles.pair
		}
		f := q.f
		here, _ := bandOf(q.w, s)
		next := uintptr(unsafe.Pointer(unsafe.SliceData(here))) + uintptr(take*q.BandBytes()+gLo*f.codeBytes)
		chunk := max(superGroups, halfBandGroups/take)
		for g := gLo; g < gHi; g += chunk {
			end := min(g+chunk, gHi)
			if q.tiles.panel != nil && tEnd-t >= halfPanelFrom {
				whole := t + q.tiles.panel.tiles.Most(tEnd-t)
				q.addPanel(scratch.Panel, y, ld, s, x, t, whole, g, end, next+uintptr((g-gLo)*f.codeBytes))
				if whole < tEnd {
					q.multiply(q.unfold(scratch, s, take, g, end, next, 0), tiles, y[(whole-t)*ld:], ld, x, whole, tEnd, g, end)
				}
				continue
			}
			if !q.tiles.pair.None() && (take == 1 || tEnd-t == 1) {
				q.addOdd(scratch, y, ld, s, take, x, t, tEnd, g, end)
				continue
			}
			c := q.unfold(scratch, s, take, g, end, next+uintptr((g-gLo)*f.codeBytes), uintptr(q.BandBytes()))
			q.multiply(c, tiles, y, ld, x, t, tEnd, g, end)
		}
		y, s, n = y[take*bands.Rows:], s+take, n-take
	}
}

// addOdd does as kernel.addOdd, by halves of groups.
func (q *halfKernel) addOdd(scratch *bands.Scratch, y []float32, ld, s, take int, x *acts.Rows, t, tEnd, g, end int) {
	const both = 2 * bands.Rows
	here, _ := bandOf(q.w, s)
	next := uintptr(unsafe.Pointer(unsafe.SliceData(here)))
	u := unfolded{bands: 2, stride: (take - 1) * q.BandBytes(), scales: scratch.Panel[:2*(end-g)*halfScaleBytes]}
	for b := range 2 {
		q.unfoldBand(&u, b, s+min(b, take-1), g, end, next)
	}
	for t < tEnd {
		lda, counts := x.GroupStride(), tEnd-t
		tile, n := q.tiles.pair.Next(max(counts, 2))
		if counts == 1 {
			lda = 0
		}
		counts = min(counts, n)
		rec := x.Groups(q.f.limit).Halves()[t*x.GroupStride()+g*acts.RecordBytes:]
		sums := scratch.Sums[:n*both]
		_ = rec[(n-1)*lda+(end-g)*acts.RecordBytes-1]
		for i := range counts {
			copy(sums[i*both:], y[i*ld:][:take*bands.Rows])
		}
		tile(&sums[0], both, &u.codes[0], u.stride, (*float32)(unsafe.Pointer(&u.scales[0])), &q.w.Levels.Of[0], &rec[0], lda, 2*(end-g))
		for i := range counts {
			copy(y[i*ld:][:take*bands.Rows], sums[i*both:])
		}
		if t += counts; t < tEnd {
			y = y[counts*ld:]
		}
	}
}

// unfolded holds the codes and scales of some bands, as a tile reads them.
type unfolded struct {
	codes  []byte // of the first band
	stride int    // to the next
	scales []byte
	bands  int
}

// unfold makes groups [g, end) of n bands ready; it prefetches as much from next on, for each band
// ahead bytes further.
func (q *halfKernel) unfold(scratch *bands.Scratch, s, n, g, end int, next, ahead uintptr) unfolded {
	groups := end - g
	u := unfolded{bands: n, stride: q.BandBytes(), scales: scratch.Panel[:n*groups*halfScaleBytes]}
	for b := range n {
		q.unfoldBand(&u, b, s+b, g, end, next+uintptr(b)*ahead)
	}
	return u
}

// unfoldBand makes groups [g, end) of band s ready, which is number b of u, and prefetches as much from next on.
func (q *halfKernel) unfoldBand(u *unfolded, b, s, g, end int, next uintptr) {
	f := q.f
	codes, scales := bandOf(q.w, s)
	codes, scales = codes[g*f.codeBytes:end*f.codeBytes], scales[g/f.unit*f.unitBytes:end/f.unit*f.unitBytes]
	if b == 0 {
		u.codes = codes
	}
	q.tiles.unfold((*float32)(unsafe.Pointer(&u.scales[b*halfScaleBytes/2])), u.bands*halfScaleBytes/2, &scales[0],
		&q.w.Levels.Scale, next, halfLines, end-g)
}

// multiply adds those groups for all tokens.
func (q *halfKernel) multiply(u unfolded, tiles bands.Tiles[halfTile], y []float32, ld int, x *acts.Rows, t, tEnd, g, end int) {
	lda, groups := x.GroupStride(), end-g
	for t < tEnd {
		tile, n := tiles.Next(tEnd - t)
		rec := x.Groups(q.f.limit).Halves()[t*lda+g*acts.RecordBytes:]
		_, _ = y[(n-1)*ld+u.bands*bands.Rows-1], rec[(n-1)*lda+groups*acts.RecordBytes-1]
		tile(&y[0], ld, &u.codes[0], u.stride, (*float32)(unsafe.Pointer(&u.scales[0])), &q.w.Levels.Of[0], &rec[0], lda, 2*groups)
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}

// addPanel adds groups [g, end) of band s for all tokens by way of a panel. Its tiles prefetch as
// many codes from next on: requests at once would wait for one another.
func (q *halfKernel) addPanel(panel []byte, y []float32, ld, s int, x *acts.Rows, t, tEnd, g, end int, next uintptr) {
	f, tiles, groups := q.f, q.tiles.panel, end-g
	codes, scales := bandOf(q.w, s)
	codes, scales = codes[g*f.codeBytes:end*f.codeBytes], scales[g/f.unit*f.unitBytes:end/f.unit*f.unitBytes]
	panel = panel[:2*groups*tiles.half]
	q.tiles.unfold((*float32)(unsafe.Pointer(&panel[tiles.half-4*bands.Rows])), tiles.half, &scales[0], &q.w.Levels.Scale,
		uintptr(unsafe.Pointer(&scales[0]))+uintptr(q.BandBytes()), 1, groups)
	tiles.write(&panel[0], &codes[0], &q.w.Levels.Of[0], 2*groups)
	recs, lda, size := x.Groups(f.limit).Halves(), x.GroupStride(), acts.RecordBytes
	if tiles.wide {
		recs, lda, size = x.Groups(acts.Unlimited).Wide(), x.Groups(acts.Unlimited).WideStride(), acts.WideBytes
	}
	last, lines := next+uintptr(len(codes)), f.codeBytes/2/64 // half a group
	if _, n := tiles.tiles.Next(tEnd - t); n < tEnd-t {
		lines = max(1, lines/panelFetchers)
	}
	for t < tEnd {
		tile, n := tiles.tiles.Next(tEnd - t)
		rec := recs[t*lda+g*size:]
		_, _ = y[(n-1)*ld+bands.Rows-1], rec[(n-1)*lda+groups*size-1]
		tile(&y[0], ld, &panel[0], &rec[0], lda, next, lines, 2*groups)
		if next += uintptr(2 * groups * lines * 64); next >= last {
			next, lines = uintptr(unsafe.Pointer(&panel[0])), 1 // all is on its way
		}
		if t += n; t < tEnd {
			y = y[n*ld:]
		}
	}
}

// Stream multiplies a tile of bands with one token, and prefetches as many bytes from
// next on.
func (q *halfKernel) Stream(scratch *bands.Scratch, y []float32, s int, x *acts.Rows, next uintptr) {
	n, f, groups := q.bands, q.f, q.w.Cols/acts.GroupCols
	lines := (f.codeBytes + f.unitBytes/f.unit + 63) / 64
	chunk := max(superGroups, halfBandGroups/n)
	for g := 0; g < groups; g += chunk {
		end := min(g+chunk, groups)
		ahead := uintptr((end - g) * lines * 64)
		u := q.unfold(scratch, s, n, g, end, next, ahead)
		next += uintptr(n) * ahead
		q.multiply(u, q.tiles.one, y, 0, x, 0, 1, g, end)
	}
}
