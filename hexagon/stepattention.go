package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
)

// acquire finds the slots of the rows' keys and values of a layer of the cache, and the
// lists of those that they see in a view. It returns false where there is no room for them.
func (r *stepAttention) acquire(layer int, v *view) bool {
	k, a := r.keys, r.tcm
	r.slots, r.lists = r.slots[:0], r.lists[:0]
	ok := true
	for i := range r.rows {
		s, found := k.hold(&r.rows[i], layer)
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
			l, ok = r.keys.collected(r.rows[lo].Seq, layer, at, from, min(at+a.chunk, end)-from)
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
func (r *stepAttention) release() {
	for i, s := range r.slots {
		r.keys.slots[s].has &^= 1 << (r.rows[i].Pos % layout.Tile)
	}
}

// attend queues a layer's attention, from queries to what they have gathered.
func (r *stepAttention) attend(l *layer, q span) {
	heads, v := r.plan.m.KVHeads, r.view(l)
	r.q.count(&r.q.work.Queries, r.n*r.plan.m.Heads)
	r.tcm.addCaps(r.q)
	r.tcm.addUnit(r.q, v.keyMask)
	for head := range heads {
		last := -1 // sequence whose only chunk of keys is in TCM
		for i := range v.tiles {
			t := &v.tiles[i]
			r.q.count(&r.q.work.Places, layout.Tile)
			r.queries(l, t, head, q)
			last = r.gather(l, t, head, last)
		}
	}
}

// eachPart calls do with the queries of a tile that lie apart bytes from one another where rows
// are stride bytes: n from head at of row's group on, rows first to first+n of the tile.
func (r *stepAttention) eachPart(t *queryTile, stride uint32, do func(row, at, first, n int, apart uint32)) {
	group := r.plan.m.Heads / r.plan.m.KVHeads
	if t.of >= 0 {
		do(t.lo+t.begin, t.of, 0, t.n, stride)
		return
	}
	for i := 0; i < t.n; {
		at := (t.begin + i) % group
		n := min(group-at, t.n-i)
		do(t.lo+(t.begin+i)/group, at, i, n, uint32(4*r.plan.m.HeadDim))
		i += n
	}
}

// queries queues the laying out of a tile.
func (r *stepAttention) queries(l *layer, t *queryTile, head int, q span) {
	d, group, size := uint32(r.plan.m.HeadDim), r.plan.m.Heads/r.plan.m.KVHeads, uint32(r.tcm.dim*layout.TileBytes)
	r.q.add(device.OpCopy, r.tcm.q, r.plan.at.zeros, size)
	r.eachPart(t, q.stride, func(row, at, first, n int, apart uint32) {
		from := q.at + uint32(row)*q.stride + 4*d*uint32(head*group+at)
		r.q.add(device.OpToTiles, r.tcm.q, from, uint32(n), 1, d, apart, size, uint32(first), 0, math.Float32bits(l.Scale*math.Log2E))
	})
}

// gather queues FlashAttention of a tile over its chunks of keys: see attention. collected
// is the sequence whose keys are in TCM, and so is what it returns.
func (r *stepAttention) gather(l *layer, t *queryTile, head, collected int) int {
	a, tcm := r.tcm, r.tcm
	size, states := uint32(a.dim*layout.TileBytes), uint32(layout.Tile*device.StateBytes)
	first, chunks := t.from/a.chunk, roundUp(t.keys, a.chunk)/a.chunk
	only := t.seen[0]/a.chunk == (t.seen[1]-1)/a.chunk // chunk of the sequence's keys
	r.q.add(device.OpCopy, r.plan.at.working[0], r.states(t, 0), states)
	if l.sinks != 0 {
		group := r.plan.m.Heads / r.plan.m.KVHeads
		of := head*group + t.begin%group
		if t.of >= 0 {
			of = r.plan.m.Heads + head*group + t.of
		}
		r.q.add(device.OpFold, r.plan.at.sums, l.sinks+uint32(of)*states, r.plan.at.working[0], 1)
	}
	for c := first; c < chunks; c++ {
		at := max(c*a.chunk, t.seen[0]) // what the sequence's rows see
		n := min((c+1)*a.chunk, t.seen[1]) - at
		all := uint32(roundUp(n, layout.Tile) / layout.Tile)
		from := max(at, t.from) // what the tile sees
		keys, skip := uint32(roundUp(min(at+n, t.keys)-from, layout.Tile)/layout.Tile), uint32(from-at)/layout.Tile
		if collected != t.seq {
			r.tcm.collect(r.q, r.keys.head, r.lists[t.seq][c-t.seen[0]/a.chunk], head, n)
		}
		if collected = -1; only {
			collected = t.seq
		}
		now, next := r.plan.at.working[(c-first)%2], uint32(0)
		r.q.add(device.OpTileMul, tcm.s, tcm.q, tcm.k+skip*size, uint32(a.dim), 0, 0, 0, 1, keys, one, columns)
		r.tcm.addCap(r.q, keys)
		for i := range t.masked {
			if tile := t.from + i*layout.Tile; from <= tile && tile < from+int(keys)*layout.Tile {
				r.tcm.addMask(r.q, tcm.s+uint32((tile-from)/layout.Tile*layout.TileBytes), t.mask+uint32(i*layout.TileBytes))
			}
		}
		r.q.add(device.OpSoftmax, tcm.s, expTable, now, tcm.diag, 1, keys)
		if c+1 < chunks {
			next = r.plan.at.working[(c-first+1)%2]
			r.q.add(device.OpCopy, next, r.states(t, c-first+1), states)
		}
		begins := uint32(0)
		if c == first && l.sinks == 0 {
			begins = 1
		}
		r.q.add(device.OpFold, r.plan.at.sums, now, next, begins)
		switch {
		case c == first && keys == all:
			r.q.add(device.OpTileMul, tcm.after, tcm.s, tcm.v, keys, 0, 0, 0, 1, uint32(a.dim), one, columns)
		default:
			if c > first {
				r.q.add(device.OpCopy, tcm.before, tcm.after, size)
			}
			for i := range uint32(a.dim) { // of all values those of the first keys
				out, v := tcm.after+i*layout.TileBytes, tcm.v+(i*all+skip)*layout.TileBytes
				if c == first {
					r.q.add(device.OpTileMul, out, tcm.s, v, keys, 0, 0, 0, 1, 1, one, columns)
				} else {
					r.q.add(device.OpTileMul, out, tcm.diag, tcm.before+i*layout.TileBytes, 1, tcm.s, v, keys, 1, 1, one, columns)
				}
			}
		}
		r.attended(t, head) // of each chunk, so that none saturates unseen
	}
	return collected
}

// attended queues the division of what a tile has gathered, to rows.
func (r *stepAttention) attended(t *queryTile, head int) {
	d, group, att := uint32(r.plan.m.HeadDim), r.plan.m.Heads/r.plan.m.KVHeads, r.plan.at.att
	r.eachPart(t, att.stride, func(row, at, first, n int, apart uint32) {
		to := att.at + uint32(row)*att.stride + 4*d*uint32(head*group+at)
		r.q.add(device.OpFromTiles, to, r.tcm.after, r.plan.at.sums, uint32(n), d, apart, uint32(first), r.plan.at.saturated)
	})
}
