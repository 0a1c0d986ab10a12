package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
)

// acquire finds the slots of the rows' keys and values of a layer of the cache, and the
// lists of those that they see in a view. It returns false where there is no room for them.
func (r *recording) acquire(layer int, v *view) bool {
	k, a := &r.keys, &r.att
	r.slots, r.lists = r.slots[:0], r.lists[:0]
	ok := true
	for i := range r.rows {
		s, found := k.hold(r.mem, &r.rows[i], layer)
		if ok = ok && found; ok {
			r.slots = append(r.slots, s)
			k.slots[s].has |= 1 << (r.rows[i].Pos % layout.Tile)
		}
	}
	for lo, hi := 0, 0; ok && lo < r.n; lo = hi {
		for hi = lo + 1; hi < r.n && r.rows[hi].Seq == r.rows[lo].Seq; hi++ {
		}
		var of []*list
		begin, end := v.begin(&r.rows[lo]), v.end(&r.rows[hi-1])
		for at := begin / a.chunk * a.chunk; ok && at < end; at += a.chunk {
			var l *list
			from := max(at, begin)
			l, ok = r.collected(r.rows[lo].Seq, layer, at, from, min(at+a.chunk, end)-from)
			of = append(of, l)
		}
		r.lists = append(r.lists, of)
	}
	if !ok {
		r.release()
	}
	return ok
}

// release tells that the slots lack the rows.
func (r *recording) release() {
	for i, s := range r.slots {
		r.keys.slots[s].has &^= 1 << (r.rows[i].Pos % layout.Tile)
	}
}

// attend queues a layer's attention, from queries to what they have gathered.
func (r *recording) attend(l *layer, q span) {
	heads, v := r.m.KVHeads, r.view(l)
	r.count(&r.work.Queries, r.n*r.m.Heads)
	r.addCaps()
	r.addUnit(v.keyMask)
	for head := range heads {
		last := -1 // sequence whose only chunk of keys is in TCM
		for i := range v.tiles {
			t := &v.tiles[i]
			r.count(&r.work.Places, layout.Tile)
			r.queries(l, t, head, q)
			last = r.gather(l, t, head, last)
		}
	}
}

// eachPart calls do with the queries of a tile that lie apart bytes from one another where rows
// are stride bytes: n from head at of row's group on, rows first to first+n of the tile.
func (r *recording) eachPart(t *queryTile, stride uint32, do func(row, at, first, n int, apart uint32)) {
	group := r.m.Heads / r.m.KVHeads
	if t.of >= 0 {
		do(t.lo+t.begin, t.of, 0, t.n, stride)
		return
	}
	for i := 0; i < t.n; {
		at := (t.begin + i) % group
		n := min(group-at, t.n-i)
		do(t.lo+(t.begin+i)/group, at, i, n, uint32(4*r.m.HeadDim))
		i += n
	}
}

// queries queues the laying out of a tile.
func (r *recording) queries(l *layer, t *queryTile, head int, q span) {
	d, group, size := uint32(r.m.HeadDim), r.m.Heads/r.m.KVHeads, uint32(r.att.dim*layout.TileBytes)
	r.add(device.OpCopy, r.att.tcm.q, r.at.zeros, size)
	r.eachPart(t, q.stride, func(row, at, first, n int, apart uint32) {
		from := q.at + uint32(row)*q.stride + 4*d*uint32(head*group+at)
		r.add(device.OpToTiles, r.att.tcm.q, from, uint32(n), 1, d, apart, size, uint32(first), 0, math.Float32bits(l.Scale*math.Log2E))
	})
}

// gather queues FlashAttention of a tile over its chunks of keys: see attention. collected
// is the sequence whose keys are in TCM, and so is what it returns.
func (r *recording) gather(l *layer, t *queryTile, head, collected int) int {
	a, tcm := &r.att, &r.att.tcm
	size, states := uint32(a.dim*layout.TileBytes), uint32(layout.Tile*device.StateBytes)
	first, chunks := t.from/a.chunk, roundUp(t.keys, a.chunk)/a.chunk
	only := t.seen[0]/a.chunk == (t.seen[1]-1)/a.chunk // chunk of the sequence's keys
	r.add(device.OpCopy, r.at.working[0], r.states(t, 0), states)
	if l.sinks != 0 {
		group := r.m.Heads / r.m.KVHeads
		of := head*group + t.begin%group
		if t.of >= 0 {
			of = r.m.Heads + head*group + t.of
		}
		r.add(device.OpFold, r.at.sums, l.sinks+uint32(of)*states, r.at.working[0], 1)
	}
	for c := first; c < chunks; c++ {
		at := max(c*a.chunk, t.seen[0]) // what the sequence's rows see
		n := min((c+1)*a.chunk, t.seen[1]) - at
		all := uint32(roundUp(n, layout.Tile) / layout.Tile)
		from := max(at, t.from) // what the tile sees
		keys, skip := uint32(roundUp(min(at+n, t.keys)-from, layout.Tile)/layout.Tile), uint32(from-at)/layout.Tile
		if collected != t.seq {
			r.collectKeys(r.lists[t.seq][c-t.seen[0]/a.chunk], head, n)
		}
		if collected = -1; only {
			collected = t.seq
		}
		now, next := r.at.working[(c-first)%2], uint32(0)
		r.add(device.OpTileMul, tcm.s, tcm.q, tcm.k+skip*size, uint32(a.dim), 0, 0, 0, 1, keys, one, columns)
		r.addCap(keys)
		for i := range t.masked {
			if tile := t.from + i*layout.Tile; from <= tile && tile < from+int(keys)*layout.Tile {
				r.addMask(tcm.s+uint32((tile-from)/layout.Tile*layout.TileBytes), t.mask+uint32(i*layout.TileBytes))
			}
		}
		r.add(device.OpSoftmax, tcm.s, expTable, now, tcm.diag, 1, keys)
		if c+1 < chunks {
			next = r.at.working[(c-first+1)%2]
			r.add(device.OpCopy, next, r.states(t, c-first+1), states)
		}
		begins := uint32(0)
		if c == first && l.sinks == 0 {
			begins = 1
		}
		r.add(device.OpFold, r.at.sums, now, next, begins)
		switch {
		case c == first && keys == all:
			r.add(device.OpTileMul, tcm.after, tcm.s, tcm.v, keys, 0, 0, 0, 1, uint32(a.dim), one, columns)
		default:
			if c > first {
				r.add(device.OpCopy, tcm.before, tcm.after, size)
			}
			for i := range uint32(a.dim) { // of all values those of the first keys
				out, v := tcm.after+i*layout.TileBytes, tcm.v+(i*all+skip)*layout.TileBytes
				if c == first {
					r.add(device.OpTileMul, out, tcm.s, v, keys, 0, 0, 0, 1, 1, one, columns)
				} else {
					r.add(device.OpTileMul, out, tcm.diag, tcm.before+i*layout.TileBytes, 1, tcm.s, v, keys, 1, 1, one, columns)
				}
			}
		}
		r.attended(t, head) // of each chunk, so that none saturates unseen
	}
	return collected
}

// attended queues the division of what a tile has gathered, to rows.
func (r *recording) attended(t *queryTile, head int) {
	d, group, att := uint32(r.m.HeadDim), r.m.Heads/r.m.KVHeads, r.at.att
	r.eachPart(t, att.stride, func(row, at, first, n int, apart uint32) {
		to := att.at + uint32(row)*att.stride + 4*d*uint32(head*group+at)
		r.add(device.OpFromTiles, to, r.att.tcm.after, r.at.sums, uint32(n), d, apart, uint32(first), r.at.saturated)
	})
}
