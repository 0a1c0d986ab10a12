package models

// attPlan is how the rows of a step meet the keys and values they see. It is
// the same for all layers and heads.
//
// Rows are cut into tiles; keys pass by a tile in chunks, and a chunk is some blocks.
// Rows of a tile that stand in the same block touch it together: those of one
// prompt, and those of forks, whose shared prefix is then read once for all of
// them.
type attPlan struct {
	tile    int // rows of a tile
	tiles   []int
	chunks  []attChunk
	touches []attTouch
	seen    []int32 // [chunks][rows of the tile × queries a KV head] keys of the chunk that a query sees
}

// attChunk is a chunk of keys passing a tile. It begins where the one before ends.
type attChunk struct {
	touches int // end of its touches
	seen    int // where its counts begin
}

// attTouch is a block and the rows of a tile that see its first keys.
type attTouch struct {
	block       int32
	at          int32 // of its first key in the chunk
	row, rows   int32 // of the tile
	least, most int32 // keys that all of the rows see, that one of them sees
}

// make plans for rows, in tiles of tile, with group queries a row and KV head.
func (p *attPlan) make(rows []place, kv *KVCache, tile, group int) {
	p.tile = tile
	p.tiles, p.chunks, p.touches, p.seen = p.tiles[:0], p.chunks[:0], p.touches[:0], p.seen[:0]
	l, chunk := kv.opt.BlockLen, kv.chunk()
	for ; len(rows) > 0; rows = rows[min(tile, len(rows)):] {
		rs, keys := rows[:min(tile, len(rows))], 0
		for i := range rs {
			keys = max(keys, rs[i].pos+1)
		}
		for lo := 0; lo < keys; lo += chunk {
			c := attChunk{seen: len(p.seen)}
			for i := range rs {
				n := int32(rs[i].sees(lo, chunk))
				for range group {
					p.seen = append(p.seen, n)
				}
			}
			for at := 0; at < chunk; at += l {
				p.touch(rs, lo, at, l)
			}
			c.touches = len(p.touches)
			p.chunks = append(p.chunks, c)
		}
		p.tiles = append(p.tiles, len(p.chunks))
	}
}

// touch plans the blocks of l keys that stand at lo+at in the rows' sequences.
func (p *attPlan) touch(rs []place, lo, at, l int) {
	var last *attTouch
	for i := range rs {
		n := int32(rs[i].sees(lo+at, l))
		if n == 0 {
			last = nil
			continue
		}
		b := rs[i].seq.blocks[(lo+at)/l]
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
func (r *place) sees(lo, n int) int { return min(n, max(0, r.pos+1-lo)) }
