package models

import (
	"slices"

	"github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/kv"
)

// attPlan is how the rows of a step meet the keys and values they see. It is
// the same for all layers and heads.
//
// Rows are cut into tiles and keys into spans; a tile passes a span in chunks, and a
// chunk is some blocks. Rows of a tile that stand in the same block touch it together:
// those of one prompt, and those of forks, whose shared prefix is then read once for
// all of them. What the same rows touch one after another is a run.
type attPlan struct {
	tile    int       // rows of a tile
	span    int       // keys of a span
	chunk   int       // keys of a chunk
	tiles   []int32   // end of the tile's passes
	passes  []attPass // by tile, then by span
	order   []int32   // passes by span; those of a span from the last tile on
	spans   []int     // end of the span's passes in order
	chunks  []attChunk
	runs    []attRun
	groups  []int32    // [runs] of keys and values: numbers of their first ones, for head 0
	seen    []int32    // [chunks][rows of the tile × queries a KV head] keys of the chunk that a query sees
	touches []attTouch // of the chunk that is being planned
}

// attPass is a tile passing a span. It begins where the pass before it ends.
type attPass struct {
	tile   int32
	chunks int32 // end of its chunks
	turn   int32 // its place in the order
}

// attChunk is a chunk of keys passing a tile. It begins where the one before ends.
type attChunk struct {
	runs int // end of its runs
	seen int // where its counts begin
}

// attRun is rows of a tile and the blocks of a chunk that they touch together.
// It begins where the one before ends.
type attRun struct {
	groups      int   // end of its groups
	at          int32 // of its first key in the chunk
	row, rows   int32 // of the tile
	least, most int32 // keys that all of the rows see, that one of them sees
}

// attTouch is a block and the rows of a tile that see its first keys.
type attTouch struct {
	block       int32
	at          int32 // of its first key in the chunk
	row, rows   int32 // of the tile
	least, most int32 // keys that all of the rows see, that one of them sees
	next        int32 // the touch that goes on where this ends; 0: none
	follows     bool  // one that this goes on from
}

// make plans for rows, in tiles of tile, with group queries a row and KV head.
func (p *attPlan) make(rows []rowPos, cache *kv.Cache, tile, group int) {
	p.tile, p.span, p.chunk = tile, spanOf(cache), chunkOf(cache)
	p.tiles, p.passes, p.chunks, p.runs, p.groups, p.seen = p.tiles[:0], p.passes[:0], p.chunks[:0], p.runs[:0], p.groups[:0], p.seen[:0]
	most := 0
	for ; len(rows) > 0; rows = rows[min(tile, len(rows)):] {
		rs, keys := rows[:min(tile, len(rows))], 0
		for i := range rs {
			keys = max(keys, rs[i].pos+1)
		}
		for lo := 0; lo < keys; lo += p.span {
			p.pass(rs, cache, lo, min(keys, lo+p.span), group)
			p.passes = append(p.passes, attPass{tile: int32(len(p.tiles)), chunks: int32(len(p.chunks))})
		}
		p.tiles, most = append(p.tiles, int32(len(p.passes))), max(most, pool.Parts(keys, p.span))
	}
	p.arrange(most)
}

// arrange puts the passes by spans spans in order. The last tiles of a prompt
// see the most keys and go first.
func (p *attPlan) arrange(spans int) {
	p.order, p.spans = p.order[:0], p.spans[:0]
	for span := range spans {
		for tile := range slices.Backward(p.tiles) {
			first, end := p.passesOf(tile)
			if first+span < end {
				p.passes[first+span].turn = int32(len(p.order))
				p.order = append(p.order, int32(first+span))
			}
		}
		p.spans = append(p.spans, len(p.order))
	}
}

// scoreRow is the room for a query's scores of a chunk, the last group of keys rounded up.
func (p *attPlan) scoreRow() int {
	return cpu.RoundUp(p.chunk, attention.KeyGroup) + attention.KeyGroup
}

// passesOf is the range of a tile's passes.
func (p *attPlan) passesOf(tile int) (first, end int) {
	if tile > 0 {
		first = int(p.tiles[tile-1])
	}
	return first, int(p.tiles[tile])
}

// chunksOf is the range of a pass's chunks.
func (p *attPlan) chunksOf(pass int) (first, end int) {
	if pass > 0 {
		first = int(p.passes[pass-1].chunks)
	}
	return first, int(p.passes[pass].chunks)
}

// runsOf is the range of a chunk's runs.
func (p *attPlan) runsOf(chunk int) (first, end int) {
	if chunk > 0 {
		first = p.chunks[chunk-1].runs
	}
	return first, p.chunks[chunk].runs
}

// groupsOf is a run's groups.
func (p *attPlan) groupsOf(run int) []int32 {
	first := 0
	if run > 0 {
		first = p.runs[run-1].groups
	}
	return p.groups[first:p.runs[run].groups]
}

// turns is the range in order of the passes by spans [lo, hi).
func (p *attPlan) turns(lo, hi int) (first, end int) {
	if lo > 0 {
		first = p.spans[lo-1]
	}
	return first, p.spans[hi-1]
}

// pass plans the chunks in which rows pass the keys [lo, hi).
func (p *attPlan) pass(rows []rowPos, cache *kv.Cache, lo, hi, group int) {
	l, chunk := cache.BlockLen(), p.chunk
	for ; lo < hi; lo += chunk {
		c := attChunk{seen: len(p.seen)}
		for i := range rows {
			n := int32(rows[i].sees(lo, chunk))
			for range group {
				p.seen = append(p.seen, n)
			}
		}
		p.touches = p.touches[:0]
		before := 0
		for at := 0; at < chunk; at += l {
			from := len(p.touches)
			p.touch(rows, lo, at, l)
			p.link(before, from, l)
			before = from
		}
		p.run(cache)
		c.runs = len(p.runs)
		p.chunks = append(p.chunks, c)
	}
}

// link finds what touches of blocks of l keys, from number from on, go on from
// touches from number before on. Blocks must be whole groups of keys for that.
func (p *attPlan) link(before, from, l int) {
	if l%attention.KeyGroup != 0 {
		return
	}
	for i := from; i < len(p.touches); i++ {
		t := &p.touches[i]
		for before < from && p.touches[before].row < t.row {
			before++
		}
		if b := &p.touches[before]; before < from && b.row == t.row && b.rows == t.rows && int(b.least) == l {
			b.next, t.follows = int32(i), true
		}
	}
}

// run makes runs of the touches of a chunk.
func (p *attPlan) run(cache *kv.Cache) {
	for i := range p.touches {
		t := &p.touches[i]
		if t.follows {
			continue
		}
		r := attRun{at: t.at, row: t.row, rows: t.rows}
		for {
			r.least, r.most = r.least+t.least, r.most+t.most
			first := int32(cache.Vectors(t.block, 0))
			for g := int32(0); g < int32(cache.Stride()); g += attention.KeyGroup {
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

// touch plans the blocks of l keys that stand at lo+at in the rows' sequences.
func (p *attPlan) touch(rs []rowPos, lo, at, l int) {
	var last *attTouch
	for i := range rs {
		n := int32(rs[i].sees(lo+at, l))
		if n == 0 {
			last = nil
			continue
		}
		b := rs[i].seq.Blocks()[(lo+at)/l]
		if last != nil && last.block == b {
			last.rows++
			last.least, last.most = min(last.least, n), max(last.most, n)
			continue
		}
		p.touches = append(p.touches, attTouch{block: b, at: int32(at), row: int32(i), rows: 1, least: n, most: n})
		last = &p.touches[len(p.touches)-1]
	}
}

// sees is how many of the n keys from position lo on the row attends to.
func (r *rowPos) sees(lo, n int) int { return min(n, max(0, r.pos+1-lo)) }
