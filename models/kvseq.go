package models

import (
	"fmt"
	"slices"
)

// KVSeq is one sequence's view of the cache: a list of blocks.
type KVSeq struct {
	c      *KVCache
	blocks []int32
	n      int // positions held
	sealed int // leading blocks that are in the index
	// swapped tells that the last sealed block took the place of an own copy.
	// Forks that share the blocks behind it may still hold the copy.
	swapped bool
}

// Open starts a sequence with the longest cached prefix of tokens, unless the
// cache is cold; its Len
// tells how many of them need no computing. Pass all but the last token when
// the last one's logits are wanted.
func (c *KVCache) Open(tokens []int32) *KVSeq {
	s := &KVSeq{c: c}
	l, parent := c.opt.BlockLen, none
	for n := l; n <= len(tokens) && !c.opt.Cold; n += l {
		own := tokens[n-l : n]
		b := c.find(c.index.hash(parent, own), parent, own)
		if b == none {
			break
		}
		c.hold(b)
		s.blocks = append(s.blocks, b)
		s.n, s.sealed, parent = n, s.sealed+1, b
	}
	c.stats.Queries++
	c.stats.QueryTokens += int64(len(tokens))
	c.stats.HitTokens += int64(s.n)
	return s
}

// Len is the number of positions the sequence holds.
func (s *KVSeq) Len() int { return s.n }

// Need is the number of blocks that Grow(n) would take from the pool, the
// copy of a shared last block included.
func (s *KVSeq) Need(n int) int {
	if n <= 0 {
		return 0
	}
	need := ceilDiv(s.n+n, s.c.opt.BlockLen) - len(s.blocks)
	if s.frozenTail() {
		need++
	}
	return need
}

// frozenTail tells whether the next position falls into a block that must not be written.
func (s *KVSeq) frozenTail() bool {
	return s.n%s.c.opt.BlockLen != 0 && !s.c.writable(s.blocks[len(s.blocks)-1])
}

// writable tells whether block b belongs to one sequence alone.
func (c *KVCache) writable(b int32) bool { return c.blocks[b].refs == 1 && !c.blocks[b].indexed }

// Grow adds n positions, copying the last block first when a fork shares it.
// On ErrNoBlocks nothing has changed.
func (s *KVSeq) Grow(n int) error {
	if n < 0 {
		panic(fmt.Sprintf("models: KVSeq.Grow(%d)", n))
	}
	need := s.Need(n)
	if need > s.c.Free() {
		return ErrNoBlocks
	}
	if n > 0 && s.frozenTail() {
		last := len(s.blocks) - 1
		b := s.c.take()
		s.c.copyBlock(b, s.blocks[last], s.n%s.c.opt.BlockLen)
		s.c.drop(s.blocks[last])
		s.blocks[last] = b
		s.c.stats.Copies++
		need--
	}
	for range need {
		s.blocks = append(s.blocks, s.c.take())
	}
	s.n += n
	return nil
}

// Seal says which tokens the positions hold (tokens[i] at position i, for all
// Len positions, all computed), so that full blocks enter the prefix index. A
// block whose content is there already is exchanged for the indexed one: equal
// prefixes have equal bits.
func (s *KVSeq) Seal(tokens []int32) {
	if len(tokens) < s.n {
		panic(fmt.Sprintf("models: KVSeq.Seal: %d tokens for %d positions", len(tokens), s.n))
	}
	c, l, parent := s.c, s.c.opt.BlockLen, none
	if s.sealed > 0 {
		parent = s.blocks[s.sealed-1]
	}
	for ; (s.sealed+1)*l <= s.n; s.sealed++ {
		own := tokens[s.sealed*l : s.sealed*l+l]
		b := s.blocks[s.sealed]
		hash := c.index.hash(parent, own)
		known := c.find(hash, parent, own)
		switch {
		case known == none && s.swapped && c.blocks[b].refs > 1:
			return // another holder of b may lack the parent; a later Seal tries again
		case known == none:
			c.insert(b, hash, parent, own)
		case known != b:
			c.hold(known)
			c.drop(b)
			s.blocks[s.sealed] = known
		}
		parent = s.blocks[s.sealed]
		s.swapped = parent != b
	}
}

// Fork is a second sequence that shares every block.
func (s *KVSeq) Fork() *KVSeq {
	for _, b := range s.blocks {
		s.c.hold(b)
	}
	f := &KVSeq{c: s.c, n: s.n, sealed: s.sealed, swapped: s.swapped}
	f.blocks = append(make([]int32, 0, len(s.blocks)+1), s.blocks...)
	return f
}

// Become makes s hold what t holds, as Fork would; of what they share already
// nothing is touched.
func (s *KVSeq) Become(t *KVSeq) {
	same := 0
	for same < min(len(s.blocks), len(t.blocks)) && s.blocks[same] == t.blocks[same] {
		same++
	}
	for _, b := range t.blocks[same:] {
		s.c.hold(b)
	}
	// Last first, as in Truncate.
	for _, b := range slices.Backward(s.blocks[same:]) {
		s.c.drop(b)
	}
	s.blocks = append(s.blocks[:same], t.blocks[same:]...)
	s.n, s.sealed, s.swapped = t.n, t.sealed, t.swapped
}

// Truncate drops positions from n on.
func (s *KVSeq) Truncate(n int) {
	if n < 0 || n > s.n {
		panic(fmt.Sprintf("models: KVSeq.Truncate(%d) of %d positions", n, s.n))
	}
	keep := ceilDiv(n, s.c.opt.BlockLen)
	// Last first, so that continuations are evicted before what they continue.
	for i := len(s.blocks) - 1; i >= keep; i-- {
		s.c.drop(s.blocks[i])
	}
	s.blocks = s.blocks[:keep]
	s.n, s.sealed = n, min(s.sealed, n/s.c.opt.BlockLen)
}

// Release gives all blocks back; indexed ones stay cached until needed.
// The sequence must not be used afterwards.
func (s *KVSeq) Release() {
	s.Truncate(0)
	s.blocks = nil
}
