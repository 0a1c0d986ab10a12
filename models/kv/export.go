package kv

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/attention"
)

// BlockBytes returns the length of what Export writes.
func (st *store) BlockBytes() (n int) {
	for i := range st.layers {
		for _, part := range st.layers[i].bytesOf(0) {
			n += len(part)
		}
	}
	return n
}

// StateBytes returns the length of a recurrent state as bytes; 0: the models have none.
func (p *states) StateBytes() int { return 4 * p.size }

// Export copies the keys and values of a block to dst, of BlockBytes, as the cache holds them. They have a meaning for
// caches of the same shape and options on machines of the same byte order.
func (st *store) Export(dst []byte, b int32) {
	for i := range st.layers {
		for _, part := range st.layers[i].bytesOf(b) {
			dst = dst[copy(dst, part):]
		}
	}
}

// Import fills a block with what Export has written. Nobody but the caller may use the block meanwhile; other blocks
// are of no concern.
func (st *store) Import(b int32, src []byte) {
	for i := range st.layers {
		for _, part := range st.layers[i].bytesOf(b) {
			src = src[copy(part, src):]
		}
	}
}

// bytesOf returns the memory of a block in a layer: keys, values and their scales.
func (l *Layer) bytesOf(b int32) [][]byte {
	first, n := l.FirstVector(b, 0), l.heads*l.stride
	return append(l.keys.bytesOf(first, n, l.dim), l.values.bytesOf(first, n, l.dim)...)
}

// bytesOf returns the memory of n vectors of dim from number first on.
func (x *vectors) bytesOf(first, n, dim int) [][]byte {
	return [][]byte{
		bytesOf(x.f16, first, n, dim), bytesOf(x.f32, first, n, dim), bytesOf(x.int8, first, n, dim), bytesOf(x.scale, first, n, 1),
		bytesOf(x.int4, first, n, dim/2), bytesOf(x.scale4, first, n, dim/attention.PartQ4),
	}
}

// bytesOf returns the memory of n vectors of dim within s, which is nil when the format does not use it.
func bytesOf[T int8 | uint8 | uint16 | float32](s []T, first, n, dim int) []byte {
	if s == nil {
		return nil
	}
	s = s[first*dim : (first+n)*dim]
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// Peek returns how many of tokens OpenOf would find. It counts as no use of them.
func (c *Cache) Peek(root *Root, tokens []int32) int {
	blocks := c.find(root, tokens)
	for c.states.size > 0 && len(blocks) > 0 && c.pool.blocks[blocks[len(blocks)-1]].checkpoint == none {
		blocks = blocks[:len(blocks)-1]
	}
	return len(blocks) * c.opt.BlockLen
}

// Sealed returns how many positions lie in blocks that the index has.
func (s *Sequence) Sealed() int { return s.sealed * s.c.opt.BlockLen }

// Checkpoint returns the last checkpoint after lo to hi tokens, the positions of which must be sealed: how many tokens it
// has seen, and its memory until the sequence changes. nil: there is none.
func (s *Sequence) Checkpoint(lo, hi int) (at int, state []byte) {
	c := s.c
	for i := hi / c.opt.BlockLen; i > 0 && i*c.opt.BlockLen >= lo && c.states.size > 0; i-- {
		if slot := c.pool.blocks[s.blocks[i-1]].checkpoint; slot != none {
			return i * c.opt.BlockLen, bytesOf(c.states.data, int(slot), 1, c.states.size)
		}
	}
	return 0, nil
}

// State returns the memory of the recurrent state, which its sequence must own; nil: the models have none.
func (s *recurrent) State() []byte {
	if s.pool.size == 0 {
		return nil
	}
	return bytesOf(s.pool.data, int(s.state), 1, s.pool.size)
}

// Restore says that all positions, a whole number of blocks, hold what was computed elsewhere for tokens, and State what
// it was after them: they enter the index.
func (s *Sequence) Restore(tokens []int32) {
	if p := s.pool; p.size > 0 {
		s.unmark()
		p.write(s.state)
		s.at, s.marks = s.n, append(s.marks, pending{s.state, s.n})
		p.hold(s.state)
	}
	s.Seal(tokens)
}
