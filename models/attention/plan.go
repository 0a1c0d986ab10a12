package attention

import (
	"slices"

	kernel "github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/kv"
)

// Plan is which rows of a step read which keys and values together. It is the
// same for all heads, and for all layers that have as many.
//
// Rows are cut into tiles and keys into splits; a tile reads a split in chunks, and
// a chunk is some blocks. Rows of a tile that see the same block touch it together:
// rows of one prompt, and rows of forks, whose shared prefix is read once for all
// of them. Blocks that the same rows touch one after another are a run. A row's own block is a run by itself where the
// cache has a residual for it.
type Plan struct {
	tile    int        // rows of a tile
	split   int        // keys of a split
	chunk   int        // keys of a chunk
	tiles   []int32    // end of the tile's items
	items   []workItem // by tile, then by split
	order   []int32    // work items by split, each split's from the last tile on
	splits  []int      // end of the split's items in order
	chunks  []chunk
	runs    []run
	groups  []int32 // [runs] of keys and values: numbers of their first ones, for head 0
	seen    []int32 // [chunks][rows of the tile × queries a KV head] keys of the chunk that a query sees
	touches []touch // of the chunk that is being planned
}

// workItem is a tile and a split that it reads. Its chunks begin where the chunks of the item before end.
type workItem struct {
	tile   int32
	chunks int32 // end of its chunks
	rank   int32 // its place in the order
}

// chunk is some keys of a work item. It begins where the one before ends.
type chunk struct {
	runs int // end of its runs
	seen int // where its counts begin
}

// run is rows of a tile and the blocks of a chunk that they touch together.
// It begins where the one before ends.
type run struct {
	groups      int   // end of its groups
	at          int32 // of its first key in the chunk
	row, rows   int32 // of the tile
	least, most int32 // keys that all of the rows see, that one of them sees
	residual    int32 // of the rows' own block, from whose first vector groups count; or kv.NoResidual
}

// touch is a block and the rows of a tile that see its first keys.
type touch struct {
	block       int32
	at          int32 // of its first key in the chunk
	row, rows   int32 // of the tile
	least, most int32 // keys that all of the rows see, that one of them sees
	next        int32 // the touch that goes on where this ends; 0: none
	follows     bool  // one that this goes on from
	residual    int32 // the block is the rows' own, and this is its residual; or kv.NoResidual
}

// build plans for rows, in tiles of tile, with group queries a row and KV head, and for
// layers that have as many heads as this one.
func (p *Plan) build(rows []RowPos, cache *kv.Cache, layer, tile, group int) {
	p.tile, p.split, p.chunk = tile, splitOf(cache), chunkOf(cache)
	p.tiles, p.items, p.chunks, p.runs, p.groups, p.seen = p.tiles[:0], p.items[:0], p.chunks[:0], p.runs[:0], p.groups[:0], p.seen[:0]
	most := 0
	for ; len(rows) > 0; rows = rows[min(tile, len(rows)):] {
		rs, keys := rows[:min(tile, len(rows))], 0
		for i := range rs {
			keys = max(keys, rs[i].keys())
		}
		for lo := 0; lo < keys; lo += p.split {
			p.addChunks(rs, cache, layer, lo, min(keys, lo+p.split), group)
			p.items = append(p.items, workItem{tile: int32(len(p.tiles)), chunks: int32(len(p.chunks))})
		}
		p.tiles, most = append(p.tiles, int32(len(p.items))), max(most, pool.Parts(keys, p.split))
	}
	p.arrange(most)
}

// arrange puts the items of all splits in order. The last tiles of a prompt
// see the most keys and go first.
func (p *Plan) arrange(splits int) {
	p.order, p.splits = p.order[:0], p.splits[:0]
	for split := range splits {
		for tile := range slices.Backward(p.tiles) {
			first, end := p.itemsOf(tile)
			if first+split < end {
				p.items[first+split].rank = int32(len(p.order))
				p.order = append(p.order, int32(first+split))
			}
		}
		p.splits = append(p.splits, len(p.order))
	}
}

// scoreRow returns the room for a query's scores of a chunk, the last group of keys rounded up.
func (p *Plan) scoreRow() int {
	return cpu.RoundUp(p.chunk, kernel.KeyGroup) + kernel.KeyGroup
}

// itemsOf returns the range of a tile's items.
func (p *Plan) itemsOf(tile int) (first, end int) {
	if tile > 0 {
		first = int(p.tiles[tile-1])
	}
	return first, int(p.tiles[tile])
}

// chunksOf returns the range of a work item's chunks.
func (p *Plan) chunksOf(item int) (first, end int) {
	if item > 0 {
		first = int(p.items[item-1].chunks)
	}
	return first, int(p.items[item].chunks)
}

// runsOf returns the range of a chunk's runs.
func (p *Plan) runsOf(chunk int) (first, end int) {
	if chunk > 0 {
		first = p.chunks[chunk-1].runs
	}
	return first, p.chunks[chunk].runs
}

// groupsOf returns a run's groups.
func (p *Plan) groupsOf(run int) []int32 {
	first := 0
	if run > 0 {
		first = p.runs[run-1].groups
	}
	return p.groups[first:p.runs[run].groups]
}

// ranks returns the range in order of the items of splits [lo, hi).
func (p *Plan) ranks(lo, hi int) (first, end int) {
	if lo > 0 {
		first = p.splits[lo-1]
	}
	return first, p.splits[hi-1]
}

// addChunks plans the chunks in which rows take the keys [lo, hi).
func (p *Plan) addChunks(rows []RowPos, cache *kv.Cache, layer, lo, hi, group int) {
	l := cache.BlockLen()
	for ; lo < hi; lo += p.chunk {
		c := chunk{seen: len(p.seen)}
		for i := range rows {
			n := int32(rows[i].sees(lo, p.chunk))
			for range group {
				p.seen = append(p.seen, n)
			}
		}
		p.touches = p.touches[:0]
		before := 0
		for at := 0; at < p.chunk; at += l {
			from := len(p.touches)
			p.addTouches(rows, cache, lo, at, l)
			p.link(before, from, l)
			before = from
		}
		p.addRuns(cache.Layer(layer), cache.Stride())
		c.runs = len(p.runs)
		p.chunks = append(p.chunks, c)
	}
}

// link finds what touches of blocks of l keys, from number from on, go on from
// touches from number before on. Blocks must be whole groups of keys for that.
func (p *Plan) link(before, from, l int) {
	if l%kernel.KeyGroup != 0 {
		return
	}
	for i := from; i < len(p.touches); i++ {
		t := &p.touches[i]
		for before < from && p.touches[before].row < t.row {
			before++
		}
		if b := &p.touches[before]; before < from && b.row == t.row && b.rows == t.rows && b.residual == t.residual && int(b.least) == l {
			b.next, t.follows = int32(i), true
		}
	}
}

// addRuns makes runs of the touches of a chunk.
func (p *Plan) addRuns(layer *kv.Layer, stride int) {
	for i := range p.touches {
		t := &p.touches[i]
		if t.follows {
			continue
		}
		r := run{at: t.at, row: t.row, rows: t.rows, residual: t.residual}
		for {
			r.least, r.most = r.least+t.least, r.most+t.most
			first := int32(0)
			if t.residual == kv.NoResidual {
				first = int32(layer.FirstVector(t.block, 0))
			}
			for g := int32(0); g < int32(stride); g += kernel.KeyGroup {
				p.groups = append(p.groups, first+g)
			}
			if t.next == 0 {
				break
			}
			t = &p.touches[t.next]
		}
		r.groups = len(p.groups)
		p.runs = append(p.runs, r)
	}
}

// addTouches plans the blocks of l keys that stand at lo+at in the rows' sequences.
func (p *Plan) addTouches(rs []RowPos, cache *kv.Cache, lo, at, l int) {
	var last *touch
	for i := range rs {
		n := int32(rs[i].sees(lo+at, l))
		if n == 0 {
			last = nil
			continue
		}
		b, residual := rs[i].Seq.Blocks()[(lo+at)/l], kv.NoResidual
		if (lo+at)/l == rs[i].Pos/l {
			residual = cache.Residual(b)
		}
		if last != nil && last.block == b && last.residual == residual {
			last.rows++
			last.least, last.most = min(last.least, n), max(last.most, n)
			continue
		}
		p.touches = append(p.touches, touch{block: b, at: int32(at), row: int32(i), rows: 1, least: n, most: n, residual: residual})
		last = &p.touches[len(p.touches)-1]
	}
}

// sees returns how many of the n keys from position lo on the row attends to.
func (r *RowPos) sees(lo, n int) int { return min(n, max(0, r.keys()-lo)) }
