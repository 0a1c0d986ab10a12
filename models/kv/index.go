package kv

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
)

// index finds full blocks by their tokens and all tokens before them. It is
// a tree: the key of a block is its parent block and its own tokens, so equal
// keys mean equal prefixes by induction. The hash only narrows the search;
// parent and tokens are compared in full.
//
// Indexed blocks that no sequence references form a list in eviction order.
type index struct {
	seed     maphash.Seed     // random: nobody can prepare colliding prompts
	mask     uint64           // bits of the hash in use; tests narrow it to force collisions
	first    map[uint64]int32 // hash → first block with it; others follow by block.twin
	key      []byte           // scratch of hash
	oldest   int32
	youngest int32
	cached   int // length of the list
}

// hash is the index key of a block with these tokens behind parent.
func (x *index) hash(parent int32, tokens []int32) uint64 {
	x.key = binary.LittleEndian.AppendUint32(x.key[:0], uint32(parent))
	for _, t := range tokens {
		x.key = binary.LittleEndian.AppendUint32(x.key, uint32(t))
	}
	return maphash.Bytes(x.seed, x.key) & x.mask
}

// held are the tokens of indexed block b.
func (c *Cache) held(b int32) []int32 {
	l := c.opt.BlockLen
	return c.tokens[int(b)*l : int(b)*l+l]
}

// find is the indexed block with these tokens behind parent, or none.
func (c *Cache) find(hash uint64, parent int32, tokens []int32) int32 {
	b, ok := c.index.first[hash]
	if !ok {
		return none
	}
	for b != none && (c.blocks[b].parent != parent || !slices.Equal(c.held(b), tokens)) {
		b = c.blocks[b].twin
	}
	return b
}

// insert indexes block b.
func (c *Cache) insert(b int32, hash uint64, parent int32, tokens []int32) {
	m := &c.blocks[b]
	if m.indexed {
		panic(fmt.Sprintf("kv: block %d sealed with two contents", b))
	}
	m.indexed, m.parent, m.hash, m.twin, m.sons = true, parent, hash, none, 0
	if first, ok := c.index.first[hash]; ok {
		m.twin = first
	}
	c.index.first[hash] = b
	copy(c.held(b), tokens)
	if parent != none {
		c.blocks[parent].sons++
	}
}

// remove takes block b, which must have no sons, out of the index.
func (c *Cache) remove(b int32) {
	m := &c.blocks[b]
	if m.sons != 0 {
		panic(fmt.Sprintf("kv: block %d evicted before its %d continuations", b, m.sons))
	}
	switch first := c.index.first[m.hash]; {
	case first != b:
		for c.blocks[first].twin != b {
			first = c.blocks[first].twin
		}
		c.blocks[first].twin = m.twin
	case m.twin != none:
		c.index.first[m.hash] = m.twin
	default:
		delete(c.index.first, m.hash)
	}
	if m.parent != none {
		c.blocks[m.parent].sons--
	}
	m.indexed = false
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

// checkIndex verifies that the tree and the hash table describe the same blocks.
func (c *Cache) checkIndex() error {
	found := 0
	for hash, b := range c.index.first {
		for ; b != none; b = c.blocks[b].twin {
			m := &c.blocks[b]
			if found++; found > len(c.blocks) {
				return fmt.Errorf("kv: more index entries than blocks")
			}
			if !m.indexed || m.hash != hash || hash != c.index.hash(m.parent, c.held(b)) {
				return fmt.Errorf("kv: block %d does not belong under hash %x", b, hash)
			}
		}
	}
	sons := make([]int32, len(c.blocks))
	for b := range c.blocks {
		m := &c.blocks[b]
		if !m.indexed {
			continue
		}
		found--
		if m.parent == none {
			continue
		}
		p := &c.blocks[m.parent]
		if sons[m.parent]++; !p.indexed || m.refs > 0 && p.refs == 0 {
			return fmt.Errorf("kv: block %d has lost its parent %d", b, m.parent)
		}
	}
	if found != 0 {
		return fmt.Errorf("kv: %d blocks too many in the index", found)
	}
	for b := range c.blocks {
		if m := &c.blocks[b]; m.indexed && m.sons != sons[b] {
			return fmt.Errorf("kv: block %d counts %d continuations, has %d", b, m.sons, sons[b])
		}
	}
	return nil
}
