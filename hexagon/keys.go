package hexagon

import (
	"math/bits"
	"slices"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// keys is the device's part of a KV cache, in the order in which the tile unit reads it.
// A row's keys and values are put there once, when the row is computed, and stay. A slot
// has 32 positions of a layer that follow one another:
//
//	[KV heads]( keys [dim] tiles, a key in each column; values [dim] tiles, a value in each row )
//
// Positions that a slot lacks are copied from the cache: those of a block that was copied
// for a fork, or that the CPU computed. Slots go round when there are none left.
type keys struct {
	q                *request
	slotsAt, listsAt region
	cache            *kv.Cache
	dim, heads       int
	head, size       int // bytes of a head, and of a slot
	slots            []slot
	of               map[slotKey][]int32 // slots by each of their blocks
	hand             int
	call             uint64 // of Attend
	lists            map[listKey]*list
	key, value       []uint16
	drift            *models.Drift // of the call's keys, which the cache lacks
}

// slotKey is a block of a layer, and which 32 of its positions.
type slotKey struct {
	layer, part int
	block       int32
}

// mostBlocks is the largest number of blocks of a cache that 32 positions have.
const mostBlocks = 4

var noBlocks = [mostBlocks]int32{-1, -1, -1, -1}

type slot struct {
	layer  int
	part   int               // of its first block
	blocks [mostBlocks]int32 // -1: not yet
	taken  [mostBlocks]uint32
	has    uint32 // positions, a bit each
	call   uint64 // that wanted it last
	again  bool   // it was wanted since the hand has passed
}

// A list is where the slots of a chunk of a sequence's keys lie, as OpCollect reads it.
type list struct {
	at   uint32
	have []uint32
}

type listKey struct {
	seq   *kv.Sequence
	layer int
	first int // tile
}

// Sizes of lists: longestChunk keys, and how many lists there are.
const (
	listBytes = longestChunk / layout.Tile * 4
	listCount = 1 << 10
)

// DefaultKeys is the memory of a device for keys and values.
const DefaultKeys = 32 << 20

// use makes ready for a cache. It returns false where the device has no room for such keys.
func (k *keys) use(cache *kv.Cache) bool {
	shape := cache.Shape()
	dim := roundUp(shape.HeadDim, layout.Tile) / layout.Tile
	if n := cache.BlockLen(); n%layout.Tile != 0 && (layout.Tile%n != 0 || layout.Tile/n > mostBlocks) {
		return false
	}
	if k.cache != cache || k.dim != dim || k.heads != shape.Heads {
		k.cache, k.dim, k.heads = cache, dim, shape.Heads
		k.head = 2 * dim * layout.TileBytes
		k.size, k.hand = shape.Heads*k.head, 0
		k.slots = make([]slot, int(k.slotsAt.size)/k.size)
		k.of, k.lists = map[slotKey][]int32{}, nil
		for i := range k.slots {
			k.slots[i].blocks = noBlocks
		}
	}
	return len(k.slots) > 0
}

// begin makes ready for a call that attends in chunks: slots that it wants stay until the
// next one.
func (k *keys) begin(a *models.Attention, chunk int) bool {
	want := 0
	for i := range a.Rows {
		if i+1 == len(a.Rows) || a.Rows[i].Seq != a.Rows[i+1].Seq {
			want += a.Rows[i].Pos/chunk + 1
		}
	}
	if !k.use(a.Cache) || want > listCount {
		return false
	}
	k.open(want)
	k.drift = a.Drift
	return true
}

// open begins a call that wants that many lists.
func (k *keys) open(want int) {
	if k.lists == nil || len(k.lists)+want > listCount {
		k.lists = map[listKey]*list{}
	}
	k.call++
	k.drift = nil
}

// at returns where a slot lies.
func (k *keys) at(s int32) uint32 { return k.slotsAt.at + uint32(int(s)*k.size) }

// slot returns the slot of tile t of a sequence's layer, an empty one if there was none.
func (k *keys) slot(seq *kv.Sequence, layer, t int) (int32, bool) {
	var blocks [mostBlocks]int32
	var taken [mostBlocks]uint32
	n, all := k.cache.BlockLen(), seq.Blocks()
	part := t * layout.Tile % n / layout.Tile
	for i := range blocks {
		blocks[i] = -1
		if at := t*layout.Tile/n + i; at < len(all) && i*n < layout.Tile {
			blocks[i], taken[i] = all[at], k.cache.Taken(all[at])
		}
	}
	for _, s := range k.of[slotKey{layer, part, blocks[0]}] {
		if k.slots[s].blocks[0] == blocks[0] && k.slots[s].fits(&blocks, &taken) {
			k.slots[s].call, k.slots[s].again = k.call, true
			k.extend(s, &blocks, &taken)
			return s, true
		}
	}
	s := k.free()
	if s < 0 {
		return 0, false
	}
	k.slots[s] = slot{layer: layer, part: part, blocks: noBlocks, call: k.call}
	k.extend(s, &blocks, &taken)
	clear(k.q.mem[k.at(s):][:k.size])
	return s, true
}

// fits reports whether the slot belongs to the blocks, as far as both have them.
func (s *slot) fits(blocks *[mostBlocks]int32, taken *[mostBlocks]uint32) bool {
	for i, b := range blocks {
		if b >= 0 && s.blocks[i] >= 0 && (s.blocks[i] != b || s.taken[i] != taken[i]) {
			return false
		}
	}
	return true
}

// extend adds to slot s the blocks that it lacks.
func (k *keys) extend(s int32, blocks *[mostBlocks]int32, taken *[mostBlocks]uint32) {
	of := &k.slots[s]
	for i, b := range blocks {
		if b >= 0 && of.blocks[i] < 0 {
			of.blocks[i], of.taken[i] = b, taken[i]
			key := slotKey{of.layer, of.part, b}
			k.of[key] = append(k.of[key], s)
		}
	}
}

// free takes a slot that this call does not want; -1: there is none.
func (k *keys) free() int32 {
	for range 2 * len(k.slots) {
		i := int32(k.hand)
		k.hand = (k.hand + 1) % len(k.slots)
		s := &k.slots[i]
		if s.call == k.call && s.blocks[0] >= 0 {
			continue
		}
		if s.again {
			s.again = false
			continue
		}
		if s.blocks[0] >= 0 {
			k.drop(i)
		}
		return i
	}
	return -1
}

// drop takes a slot out of the lists of its blocks.
func (k *keys) drop(s int32) {
	for _, b := range k.slots[s].blocks {
		if b < 0 {
			continue
		}
		key := slotKey{k.slots[s].layer, k.slots[s].part, b}
		if of := slices.DeleteFunc(k.of[key], func(i int32) bool { return i == s }); len(of) > 0 {
			k.of[key] = of
		} else {
			delete(k.of, key)
		}
	}
}

// put copies position pos of all heads from the cache to its slot.
func (k *keys) put(s int32, seq *kv.Sequence, layer, pos int) {
	d := k.cache.Shape().HeadDim
	if len(k.key) < d {
		k.key, k.value = make([]uint16, d), make([]uint16, d)
	}
	col := pos % layout.Tile
	for h := range k.heads {
		seq.Halves(k.key, k.value, layer, h, pos, pos+1)
		k.drift.Restore(k.key[:d], h, pos)
		at := k.at(s) + uint32(h*k.head)
		values := at + uint32(k.dim*layout.TileBytes)
		for i := range d {
			of := uint32(i / layout.Tile * layout.TileBytes)
			putHalf(k.q.mem, at+of, layout.TileIndex(i%layout.Tile, col), number(k.key[i]))
			putHalf(k.q.mem, values+of, layout.TileIndex(col, i%layout.Tile), number(k.value[i]))
		}
	}
	k.q.count(&k.q.work.Written, 4*d*k.heads)
	k.slots[s].has |= 1 << col
}

// store puts the keys and values of the call's rows to their slots.
func (k *keys) store(a *models.Attention) {
	for i := range a.Rows {
		r := &a.Rows[i]
		if s, ok := k.hold(r, a.Layer); ok {
			k.put(s, r.Seq, a.Layer, r.Pos)
		}
	}
}

// hold returns the slot that a row's keys and values of a layer go to. Other slots that have
// the row's block too lack its position from now on.
func (k *keys) hold(r *models.RowPos, layer int) (int32, bool) {
	n := k.cache.BlockLen()
	for _, s := range k.of[slotKey{layer, r.Pos % n / layout.Tile, r.Seq.Blocks()[r.Pos/n]}] {
		k.slots[s].has &^= 1 << (r.Pos % layout.Tile)
	}
	return k.slot(r.Seq, layer, r.Pos/layout.Tile)
}

// collected returns the list of the slots of n keys of a sequence from position from on, a
// multiple of 32, of a chunk of keys that begins at first. It returns false where there is no room
// for them.
func (k *keys) collected(seq *kv.Sequence, layer, first, from, n int) (*list, bool) {
	key := listKey{seq, layer, first / layout.Tile}
	l := k.lists[key]
	if l == nil {
		if len(k.lists) == listCount {
			return nil, false
		}
		l = &list{at: k.listsAt.at + uint32(len(k.lists)*listBytes)}
		k.lists[key] = l
	}
	for t := range roundUp(n, layout.Tile) / layout.Tile {
		pos := from + t*layout.Tile
		s, ok := k.slot(seq, layer, pos/layout.Tile)
		if !ok {
			return nil, false
		}
		wanted := uint32(1)<<min(layout.Tile, from+n-pos) - 1 // all ones for 32: the shift leaves none
		for lacks := wanted &^ k.slots[s].has; lacks != 0; lacks &= lacks - 1 {
			k.put(s, seq, layer, pos+bits.TrailingZeros32(lacks))
		}
		if at := k.at(s); t == len(l.have) || l.have[t] != at {
			if t == len(l.have) {
				l.have = append(l.have, at)
			}
			l.have[t] = at
			device.View[uint32](k.q.mem, l.at+uint32(4*t), 1)[0] = at
			k.q.count(&k.q.work.Written, 4)
		}
	}
	return l, true
}
