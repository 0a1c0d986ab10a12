package kv

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
)

// hash returns the index key of a block with these tokens after parent.
func (x *index) hash(parent int32, tokens []int32) uint64 {
	x.key = binary.LittleEndian.AppendUint32(x.key[:0], uint32(parent))
	for _, t := range tokens {
		x.key = binary.LittleEndian.AppendUint32(x.key, uint32(t))
	}
	return maphash.Bytes(x.seed, x.key) & x.mask
}

// tokensOf returns the tokens of indexed block b.
func (c *Cache) tokensOf(b int32) []int32 {
	l := c.opt.BlockLen
	return c.tokens[int(b)*l : int(b)*l+l]
}

// find returns the indexed block with these tokens after parent, or none.
func (c *Cache) find(hash uint64, parent int32, tokens []int32) int32 {
	b, ok := c.index.first[hash]
	if !ok {
		return none
	}
	for b != none && (c.blocks[b].parent != parent || !slices.Equal(c.tokensOf(b), tokens)) {
		b = c.blocks[b].sameHash
	}
	return b
}

// insert indexes block b of a sequence of that root.
func (c *Cache) insert(b int32, hash uint64, parent int32, root *Root, tokens []int32) {
	m := &c.blocks[b]
	if m.indexed {
		panic(fmt.Sprintf("kv: block %d sealed with two contents", b))
	}
	m.indexed, m.parent, m.hash, m.sameHash, m.children = true, parent, hash, none, 0
	if first, ok := c.index.first[hash]; ok {
		m.sameHash = first
	}
	c.index.first[hash] = b
	copy(c.tokensOf(b), tokens)
	if c.observer != nil {
		c.observer.Stored(b, max(parent, none), root, tokens)
	}
	if parent >= 0 {
		c.blocks[parent].children++
	}
}

// remove takes block b, which must have no children, out of the index.
func (c *Cache) remove(b int32) {
	m := &c.blocks[b]
	if m.children != 0 {
		panic(fmt.Sprintf("kv: block %d evicted before its %d continuations", b, m.children))
	}
	switch first := c.index.first[m.hash]; {
	case first != b:
		for c.blocks[first].sameHash != b {
			first = c.blocks[first].sameHash
		}
		c.blocks[first].sameHash = m.sameHash
	case m.sameHash != none:
		c.index.first[m.hash] = m.sameHash
	default:
		delete(c.index.first, m.hash)
	}
	if m.parent >= 0 {
		c.blocks[m.parent].children--
	}
	m.indexed = false
	c.dropCheckpoint(b)
	if c.observer != nil {
		c.observer.Removed(b)
	}
}

// cache puts b at the young end of the eviction order.
func (c *Cache) cache(b int32) {
	x, m := &c.index, &c.blocks[b]
	m.older, m.younger = x.youngest, none
	if x.youngest != none {
		c.blocks[x.youngest].younger = b
	} else {
		x.oldest = b
	}
	x.youngest = b
	x.cached++
}

// uncache takes b out of the eviction order.
func (c *Cache) uncache(b int32) {
	x, m := &c.index, &c.blocks[b]
	if m.older != none {
		c.blocks[m.older].younger = m.younger
	} else {
		x.oldest = m.younger
	}
	if m.younger != none {
		c.blocks[m.younger].older = m.older
	} else {
		x.youngest = m.older
	}
	x.cached--
}
