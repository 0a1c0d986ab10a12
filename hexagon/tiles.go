package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/pipeline"
)

// tileRows is the most rows that are multiplied at once: eight columns of tiles, whose
// 32 lanes each are rows of the batch.
const tileRows = 256

// tiling is how a product by tiles uses TCM. Strips of weights are copied, unfolded
// and multiplied in parts of k columns; while some are multiplied the next are unfolded
// and those after copied, so there are two of each buffer. The device waits where operands of packets
// are still under way, and for nothing else.
type tiling struct {
	cols    int    // of tiles: 32 rows of activations each
	k       int    // columns of a part, the same for any rows: so are the roundings
	strips  int    // at once; of a part of the columns one
	y       uint32 // where results go: [strips][4][cols] tiles
	x       uint32
	weights [pipeline.Buffers]buffers
	bytes   bool // of tiles of bytes
}

// A pass is some strips of a matrix that go through the pipeline at once.
type pass struct {
	*linear
	strip, strips int
	take          func(strip, strips int, out uint32) // queues what becomes of their results; nil: they are copied to y
}

// passes appends those of strips [first, first+strips).
func (l *linear) passes(to []pass, t *tiling, first, strips int, take func(strip, strips int, out uint32)) []pass {
	for end := first + strips; first < end; first += t.strips {
		to = append(to, pass{l, first, min(t.strips, end-first), take})
	}
	return to
}

// buffers of a part of a strip.
type buffers struct{ codes, scales, offsets, tiles, out uint32 }

// tile plans a product of n rows, at most tileRows, with results at y.
func (l *linear) tile(n int, y uint32) (t tiling) {
	t.y = y
	t.cols = roundUp(n, layout.Tile) / layout.Tile
	// A column of weights takes bytes of activations, and twice those of its codes,
	// scales, offsets and tiles; out and what alignment wastes are fixed.
	const cols = tileRows / layout.Tile
	fixed := (2*4*cols + 16) * layout.TileBytes
	column := 2*layout.Tile*cols + 2*(l.codeBytes()+2*layout.Strip*2/32+2*layout.Strip)
	t.k = min(l.K, (tcmEnd-scratch-fixed)/column/layout.TableCols*layout.TableCols)
	t.strips = 1
	l.lay(&t)
	if t.cols > 1 || t.k < l.K { // the tile unit takes longer than what strips wait for beside it
		return t
	}
	for more := t; ; t = more {
		if more.strips++; more.strips*l.K > stripsColumns || more.strips*layout.Strip > l.M || l.lay(&more) > tcmEnd {
			return t
		}
	}
}

// stripsColumns is how many columns strips that go through the pipeline at once have in all: what a strip takes
// beside its work, packets and a barrier, takes as long as those of a thousand columns.
const stripsColumns = 5120

// lay places the buffers of a tiling, and returns where they end.
func (l *linear) lay(t *tiling) int {
	at := uint32(scratch)
	t.x = take(&at, t.cols*t.k*2*layout.Tile)
	for i := range t.weights {
		w := &t.weights[i]
		w.codes = take(&at, t.strips*t.k*l.codeBytes())
		w.scales, w.offsets = take(&at, t.strips*t.k/32*layout.Strip*2), take(&at, t.strips*t.k/32*layout.Strip*2)
		if w.tiles = w.codes; l.halves == nil {
			w.tiles = take(&at, t.strips*t.k*layout.Strip*2)
		}
		w.out = take(&at, t.strips*4*t.cols*layout.TileBytes)
	}
	return int(at)
}

// tileRowsOfStrip is how many rows of tiles a strip is.
const tileRowsOfStrip = layout.Strip / layout.Tile

// codeBytes returns the size of a strip's codes of one column, scales of super-groups
// included.
func (l *linear) codeBytes() int {
	if l.groups != nil {
		return layout.Strip * layout.SuperGroupBytes / layout.SuperGroup
	}
	return layout.Strip * l.Bits / 8 // halves have 16 bits
}

// mulTiles multiplies on the tile unit.
func (ps *products) mulTiles(p *product) error {
	if p.bytes {
		return ps.mulBytes(p)
	}
	for lo := 0; lo < p.n; lo += tileRows {
		n := min(tileRows, p.n-lo)
		t := p.tile(n, ps.plan.y.at)
		now := resident{p.acts, p.sets(), PathTiles, lo, n}
		if p.acts == nil || ps.resident != now {
			ps.resident = now
			ps.layTiles(p, lo, n, ps.plan.x.at)
		}
		for c := 0; c < p.K; c += t.k {
			part := min(t.k, p.K-c)
			for first := 0; first < p.M/layout.Strip; {
				ps.q.loadRows(p, &t, ps.plan.x.at, c, part)
				strips := p.fitting(first, t.cols*layout.Tile, 2)
				t.pipeline(ps.q, p.passes(nil, &t, first, strips, nil), c, part)
				if err := ps.s.run(); err != nil {
					return err
				}
				ps.gatherTiles(p, lo, n, &t, first, strips, c > 0)
				first += strips
			}
		}
	}
	return nil
}

// loadRows queues the copies of columns [c, c+part) of the rows at x to TCM.
func (q *request) loadRows(p *product, t *tiling, x uint32, c, part int) {
	for col := range t.cols { // of all columns those of the part
		q.add(device.OpCopy, t.x+uint32(col*part*2*layout.Tile), x+uint32((col*p.K+c)*2*layout.Tile), uint32(part*2*layout.Tile))
	}
}

// layTiles lays out rows [lo, lo+n) at x, zeros beyond the last one: [tiles of 32
// rows][k/32] tiles with a row in each column.
func (ps *products) layTiles(p *product, lo, n int, x uint32) {
	size := roundUp(n, layout.Tile) * 2 * p.K
	ps.q.count(&ps.q.work.Written, size)
	clear(ps.q.mem[x:][:size])
	for i := range min(n, p.n-lo) {
		row := p.row(lo + i)
		inverse := 1 / tileScale(row)
		at := x + uint32(i/layout.Tile*p.K*2*layout.Tile)
		for j, f := range row {
			putHalf(ps.q.mem, at+uint32(j/layout.Tile*layout.TileBytes), layout.TileIndex(j%layout.Tile, i%layout.Tile), layout.F16(f*inverse))
		}
	}
}

// tileScale returns the power of two that makes a row's largest number at most 1.
func tileScale(row []float32) float32 {
	most := largest(row)
	if most == 0 {
		return 1
	}
	_, e := math.Frexp(float64(most))
	return float32(math.Ldexp(1, max(-126, min(e, 127))))
}

// outScale returns the power of two by which results are multiplied so that none is too
// large, activations being at most 1.
func (l *linear) outScale(part int) float32 {
	_, e := math.Frexp(l.most * float64(part) / 65504)
	return float32(math.Ldexp(1, -max(0, e)))
}

// pipeline queues columns [c, c+part) of passes, all of matrices that have this tiling.
func (t *tiling) pipeline(q *request, passes []pass, c, part int) {
	_ = pipeline.Order(len(passes), passes[0].halves == nil, func(of pipeline.Job) error { // none fails
		switch p, w := &passes[of.Tile], &t.weights[of.Buffer]; of.Stage {
		case pipeline.Load:
			p.load(q, w, c, part)
		case pipeline.Unpack:
			p.unpack(q, t, w, part)
		case pipeline.Multiply:
			p.multiply(q, t, w, part)
		default:
			p.store(q, t, w, p.strip-passes[0].strip)
		}
		return nil
	})
}

// load queues the copies of a pass's columns to TCM.
func (p *pass) load(q *request, w *buffers, c, part int) {
	l := p.linear
	if l.inTiles() != nil {
		row, size, rows := l.K*l.codeBytes()/tileRowsOfStrip, part*l.codeBytes()/tileRowsOfStrip, p.strips*tileRowsOfStrip
		if part == l.K { // rows of tiles lie behind one another
			size, rows = size*rows, 1
		}
		for i := range rows {
			from := l.codes + uint32((p.strip*tileRowsOfStrip+i)*row+c*l.codeBytes()/tileRowsOfStrip)
			q.add(device.OpCopy, w.codes+uint32(i*size), from, uint32(size))
		}
		return
	}
	codes, scales, offsets := l.at(p.strip)
	q.add(device.OpCopy, w.codes, codes+uint32(c/layout.Block*layout.BlockBytes(l.Bits)), uint32(p.strips*part*l.codeBytes()))
	at, size := uint32(c/l.Group*layout.Strip*2), uint32(p.strips*(part/l.Group)*layout.Strip*2)
	if scales != 0 {
		q.add(device.OpCopy, w.scales, scales+at, size)
	}
	if offsets != 0 {
		q.add(device.OpCopy, w.offsets, offsets+at, size)
	}
}

// unpack queues the making of tiles of what load has copied: a matrix of the pass's strips.
func (p *pass) unpack(q *request, t *tiling, w *buffers, part int) {
	l := p.linear
	if t.bytes {
		q.add(device.OpByteTiles, w.tiles, w.codes, uint32(part/layout.Block), uint32(l.Bits))
		return
	}
	if l.groups != nil {
		q.add(device.OpVLUT16, w.tiles, w.codes, uint32(p.strips*part*layout.Strip/layout.SuperGroup), l.table)
		return
	}
	group, scales, offsets := uint32(l.Group), w.scales, w.offsets
	if l.Group == l.K {
		group, scales = uint32(part), 0
	}
	if l.Offsets == nil {
		offsets = 0
	}
	q.add(device.OpDequant, w.tiles, w.codes, scales, offsets, l.table, 0, 0, uint32(part/layout.Block), uint32(part), uint32(l.Bits), group, form(l.InBytes()), uint32(p.strips-1))
}

// multiply queues the product of those tiles.
func (p *pass) multiply(q *request, t *tiling, w *buffers, part int) {
	if t.bytes {
		q.add(device.OpTileMulBytes, w.out, w.tiles, t.x, uint32(part/layout.Tile), byteRowsOfStrip, uint32(t.cols), columns)
		return
	}
	q.add(device.OpTileMul, w.out, w.tiles, t.x, uint32(part/layout.Tile), 0, 0, 0, uint32(p.strips*tileRowsOfStrip), uint32(t.cols), uint32(layout.F16(p.outScale(t.k))), columns)
}

// store queues what becomes of its results, which begin at strip at of those at y.
func (p *pass) store(q *request, t *tiling, w *buffers, at int) {
	if p.take != nil {
		p.take(p.strip, p.strips, w.out)
		return
	}
	size := 4 * t.cols * layout.TileBytes
	if t.bytes {
		size = t.planes()
	}
	q.add(device.OpCopy, t.y+uint32(at*size), w.out, uint32(p.strips*size))
}

// gatherTiles turns the results of strips into rows [lo, lo+n) of the product, or adds
// them there.
func (ps *products) gatherTiles(p *product, lo, n int, t *tiling, first, strips int, more bool) {
	out := p.outScale(t.k)
	ps.q.count(&ps.q.work.Read, 2*strips*layout.Strip*t.cols*layout.Tile)
	for i := range n {
		scale, row := tileScale(p.row(lo+i))/out, p.out(lo+i)
		for m := first * layout.Strip; m < min(p.Rows, (first+strips)*layout.Strip); m++ {
			at := t.y + uint32(((m/layout.Tile-first*4)*t.cols+i/layout.Tile)*layout.TileBytes)
			f := layout.F32(half(ps.q.mem, at, layout.TileIndex(m%layout.Tile, i%layout.Tile))) * p.R[m] * scale
			if more {
				f += row[m]
			}
			row[m] = f
		}
	}
}
