package kv

import (
	"fmt"
	"hash/maphash"
	"math"
)

// init gives the pool these blocks, all of them free. Blocks that leave its index lose their checkpoints.
func (p *pool) init(blocks []block, blockLen int, checkpoints *states) {
	p.blocks, p.free, p.checkpoints = blocks, make([]int32, len(blocks)), checkpoints
	for i := range p.free {
		p.free[i] = int32(len(blocks) - 1 - i) // low numbers go first
	}
	p.residuals.blocks = blocks
	p.index = index{blocks: blocks, blockLen: blockLen, seed: maphash.MakeSeed(), mask: math.MaxUint64, first: map[uint64]int32{}, oldest: none, youngest: none}
	p.highWater.moved = make(chan struct{}, 1)
}

// Free returns the number of blocks that Grow can still obtain: free ones and
// indexed ones that no sequence holds.
func (p *pool) Free() int { return len(p.free) + p.index.cached }

// take hands out a block that nobody references, evicting the oldest cached
// one when none is free. Free() must not be 0. The block has no residual yet.
func (p *pool) take() int32 {
	var b int32
	if n := len(p.free); n > 0 {
		b = p.free[n-1]
		p.free = p.free[:n-1]
		p.highWater.raise(b)
	} else {
		b = p.evict()
		p.evictions++
	}
	p.blocks[b].refs = 1
	p.blocks[b].taken++
	return b
}

// evict takes the oldest cached block out of the index.
func (p *pool) evict() int32 {
	b := p.index.oldest
	p.index.uncache(b)
	p.index.remove(b)
	p.checkpoints.dropCheckpoint(b)
	return b
}

// Taken counts how often block b was handed out: what it held before is lost then. Whoever
// copies blocks elsewhere tells by it whether a copy is still one.
func (p *pool) Taken(b int32) uint32 { return p.blocks[b].taken }

// hold adds a reference to b.
func (p *pool) hold(b int32) {
	if p.blocks[b].refs == 0 {
		p.index.uncache(b)
	}
	p.blocks[b].refs++
}

// drop takes a reference from b. An indexed block stays cached.
func (p *pool) drop(b int32) {
	m := &p.blocks[b]
	if m.refs--; m.refs > 0 {
		return
	}
	if m.refs < 0 {
		panic(fmt.Sprintf("kv: block %d has %d references", b, m.refs))
	}
	if p.residuals.give(b); m.indexed {
		p.index.cache(b)
	} else {
		p.free = append(p.free, b)
	}
}

// Forget empties the index of prefixes: what its blocks hold is not to be trusted.
// Those that sequences share stay until they are released.
func (p *pool) Forget() {
	if o := p.index.observer; o != nil && p.index.size() == p.index.cached { // nothing will be left
		p.index.observer = nil
		defer func() {
			p.index.observer = o
			o.Cleared()
		}()
	}
	for p.index.cached > 0 {
		p.free = append(p.free, p.evict())
	}
}

// writable tells whether block b belongs to one sequence alone.
func (p *pool) writable(b int32) bool { return p.blocks[b].refs == 1 && !p.blocks[b].indexed }
