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
func (x *index) tokensOf(b int32) []int32 {
	l := x.blockLen
	return x.tokens[int(b)*l : int(b)*l+l]
}

// find returns the indexed block with these tokens after parent, or none.
func (x *index) find(hash uint64, parent int32, tokens []int32) int32 {
	b, ok := x.first[hash]
	if !ok {
		return none
	}
	for b != none && (x.blocks[b].parent != parent || !slices.Equal(x.tokensOf(b), tokens)) {
		b = x.blocks[b].sameHash
	}
	return b
}

// insert indexes block b of a sequence of that root.
func (x *index) insert(b int32, hash uint64, parent int32, root *Root, tokens []int32) {
	m := &x.blocks[b]
	if m.indexed {
		panic(fmt.Sprintf("kv: block %d sealed with two contents", b))
	}
	m.indexed, m.parent, m.hash, m.sameHash, m.children = true, parent, hash, none, 0
	if first, ok := x.first[hash]; ok {
		m.sameHash = first
	}
	x.first[hash] = b
	copy(x.tokensOf(b), tokens)
	m.salted = root != nil && root.Salt != Salt{}
	if x.observer != nil && !m.salted {
		x.observer.Stored(b, max(parent, none), root, tokens)
	}
	if parent >= 0 {
		x.blocks[parent].children++
	} else {
		x.salts.use(root, 1)
	}
}

// remove takes block b, which must have no children, out of the index.
func (x *index) remove(b int32) {
	m := &x.blocks[b]
	if m.children != 0 {
		panic(fmt.Sprintf("kv: block %d evicted before its %d continuations", b, m.children))
	}
	switch first := x.first[m.hash]; {
	case first != b:
		for x.blocks[first].sameHash != b {
			first = x.blocks[first].sameHash
		}
		x.blocks[first].sameHash = m.sameHash
	case m.sameHash != none:
		x.first[m.hash] = m.sameHash
	default:
		delete(x.first, m.hash)
	}
	if m.parent >= 0 {
		x.blocks[m.parent].children--
	} else {
		x.salts.use(x.salts.salted(m.parent), -1)
	}
	m.indexed = false
	if x.observer != nil && !m.salted {
		x.observer.Removed(b)
	}
}

// cache puts b at the young end of the eviction order.
func (x *index) cache(b int32) {
	m := &x.blocks[b]
	m.older, m.younger = x.youngest, none
	if x.youngest != none {
		x.blocks[x.youngest].younger = b
	} else {
		x.oldest = b
	}
	x.youngest = b
	x.cached++
}

// uncache takes b out of the eviction order.
func (x *index) uncache(b int32) {
	m := &x.blocks[b]
	if m.older != none {
		x.blocks[m.older].younger = m.younger
	} else {
		x.oldest = m.younger
	}
	if m.younger != none {
		x.blocks[m.younger].older = m.older
	} else {
		x.youngest = m.older
	}
	x.cached--
}
