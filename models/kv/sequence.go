package kv

import (
	"context"
	"fmt"
	"slices"
)

// Open starts a sequence with the longest cached prefix of tokens, or with none
// if the cache is cold; its Len counts the tokens that need not be computed. Pass
// all but the last token when the last one's logits are wanted. Of a model with
// recurrent layers the prefix must end at a checkpoint.
func (c *Cache) Open(tokens []int32) *Sequence { return c.OpenOf(nil, tokens) }

// Root begins the prefixes of one variant of the model: prefixes of two roots differ, whatever
// their tokens.
type Root struct {
	Number int32 // positive; of each variant another one
	// ID, Name and Salt tell prefixes apart in other processes too.
	ID   int
	Name string
	// Digest identifies what the variant is made of in every process; nil: its prefixes stay in this one.
	Digest func(context.Context) (string, error)
	Salt   Salt // OpenSalted's; prefixes with one are nobody else's business

	key   saltKey // of a salted root
	users int     // sequences, and blocks without parents in the index, of a salted root
}

// before stands for the parent of the first block: none, or below it. nil is Open's root.
func (r *Root) before() int32 {
	if r == nil {
		return none
	}
	return none - r.Number
}

// OpenOf does what Open does for sequences of another root. Only the same variant of the model finds its blocks. Open's
// root is nil.
func (c *Cache) OpenOf(root *Root, tokens []int32) *Sequence {
	return c.OpenSalted(root, Salt{}, tokens)
}

// OpenSalted does what OpenOf does for sequences that find the blocks of their own salt alone.
func (c *Cache) OpenSalted(root *Root, salt Salt, tokens []int32) *Sequence {
	root = c.index.salts.root(root, salt)
	c.index.salts.use(root, 1)
	s := &Sequence{extent: extent{c: c}, root: root, recurrent: recurrent{pool: &c.states, state: none, saved: none}}
	l := c.opt.BlockLen
	s.blocks = c.find(root, tokens)
	s.n, s.sealed, s.settled = len(s.blocks)*l, len(s.blocks), len(s.blocks)
	if c.states.size > 0 {
		branch := s.n
		s.n = s.rewind(branch)
		s.Want(branch) // others have parted here, and more may
		s.sealed, s.settled = s.n/l, s.n/l
		s.blocks = s.blocks[:s.sealed]
	}
	for _, b := range s.blocks {
		c.pool.hold(b)
	}
	c.stats.Queries++
	c.stats.QueryTokens += int64(len(tokens))
	c.stats.HitTokens += int64(s.n)
	return s
}

// find returns the indexed blocks of the longest prefix of tokens.
func (c *Cache) find(root *Root, tokens []int32) (blocks []int32) {
	l, parent := c.opt.BlockLen, root.before()
	for n := l; n <= len(tokens) && !c.opt.Cold; n += l {
		own := tokens[n-l : n]
		b := c.index.find(c.index.hash(parent, own), parent, own)
		if b == none {
			break
		}
		blocks, parent = append(blocks, b), b
	}
	return blocks
}

// Len returns the number of positions the sequence holds.
func (s *extent) Len() int { return s.n }

// Blocks returns the numbers of the blocks that hold the positions, in their order,
// to read until the sequence changes.
func (s *extent) Blocks() []int32 { return s.blocks }

// In tells whether the sequence lies in cache c.
func (s *extent) In(c *Cache) bool { return s.c == c }

// FirstShared returns where the first block of the positions lo to hi begins that
// another sequence or the index holds too, so that it must not be written. A block that has no residual any more is like it.
func (s *extent) FirstShared(lo, hi int) (pos int, shared bool) {
	for i := lo / s.c.opt.BlockLen; i <= hi/s.c.opt.BlockLen; i++ {
		if b := s.blocks[i]; !s.c.writable(b) || s.c.lacksResidual(b) {
			return i * s.c.opt.BlockLen, true
		}
	}
	return 0, false
}

// Need returns the number of blocks that Grow(n) would take from the pool, the
// copy of a shared last block included.
func (s *extent) Need(n int) int {
	if n <= 0 {
		return 0
	}
	need := s.c.blocksFor(s.n+n) - len(s.blocks)
	if s.frozenTail() {
		need++
	}
	return need
}

// frozenTail tells whether the next position falls into a block that must not be written.
func (s *extent) frozenTail() bool {
	return s.n%s.c.opt.BlockLen != 0 && !s.c.writable(s.blocks[len(s.blocks)-1])
}

// Grow adds n positions, copying the last block and the recurrent state first when
// a fork shares them. Types with 4 bits have a residual for each block that is taken. On ErrNoBlocks nothing has changed.
func (s *Sequence) Grow(n int) error { return s.grow(n, s.c.residuals.used()) }

// GrowStored adds the positions of n/BlockLen whole blocks, which Import fills. Nothing is computed in them, so they have
// no residuals.
func (s *Sequence) GrowStored(n int) error {
	if n%s.c.opt.BlockLen != 0 || s.n%s.c.opt.BlockLen != 0 {
		panic(fmt.Sprintf("kv: Sequence.GrowStored(%d) after %d positions", n, s.n))
	}
	return s.grow(n, false)
}

// grow adds n positions, in blocks with residuals or without.
func (s *Sequence) grow(n int, residuals bool) error {
	if n < 0 {
		panic(fmt.Sprintf("kv: Sequence.Grow(%d)", n))
	}
	need := s.Need(n)
	if need > s.c.Free() || residuals && need > s.c.FreeResiduals() || n > 0 && s.NeedState() > s.c.FreeStates() {
		return ErrNoBlocks
	}
	if n > 0 {
		s.own()
	}
	if n > 0 && s.frozenTail() {
		last := len(s.blocks) - 1
		b := s.c.take(residuals)
		s.c.residuals.copy(b, s.blocks[last])
		s.c.copyBlock(b, s.blocks[last], s.n%s.c.opt.BlockLen)
		s.c.pool.drop(s.blocks[last])
		s.blocks[last] = b
		s.c.stats.Copies++
		need--
	}
	for range need {
		s.blocks = append(s.blocks, s.c.take(residuals))
	}
	s.n += n
	return nil
}

// take hands out a block, with a residual or without.
func (c *Cache) take(residual bool) int32 {
	b := c.pool.take()
	if residual {
		c.residuals.take(b)
	}
	return b
}

// Seal says which tokens the positions hold (tokens[i] at position i, for all
// Len positions, all computed), so that full blocks enter the prefix index. A
// block whose content is there already is exchanged for the indexed one: equal
// prefixes have equal bits. Full blocks give their residuals back.
func (s *Sequence) Seal(tokens []int32) {
	if len(tokens) < s.n {
		panic(fmt.Sprintf("kv: Sequence.Seal: %d tokens for %d positions", len(tokens), s.n))
	}
	c, l, parent := s.c, s.c.opt.BlockLen, s.root.before()
	if s.sealed > 0 {
		parent = s.blocks[s.sealed-1]
	}
	defer s.keep()
	defer s.Settle()
	for ; (s.sealed+1)*l <= s.n; s.sealed++ {
		own := tokens[s.sealed*l : s.sealed*l+l]
		b := s.blocks[s.sealed]
		hash := c.index.hash(parent, own)
		known := c.index.find(hash, parent, own)
		switch {
		case known == none && s.swapped && c.pool.blocks[b].refs > 1:
			return // another holder of b may lack the parent; a later Seal tries again
		case known == none:
			c.index.insert(b, hash, parent, s.root, own)
		case known != b:
			c.pool.hold(known)
			c.pool.drop(b)
			s.blocks[s.sealed] = known
		}
		parent = s.blocks[s.sealed]
		s.swapped = parent != b
	}
}

// Fork returns a second sequence that shares every block.
func (s *Sequence) Fork() *Sequence {
	for _, b := range s.blocks {
		s.c.pool.hold(b)
	}
	f := &Sequence{extent: extent{c: s.c, n: s.n, settled: s.settled}, root: s.root, sealed: s.sealed, swapped: s.swapped, recurrent: recurrent{pool: s.pool, state: none, saved: none}}
	f.setState(s.state, s.at)
	s.c.index.salts.use(s.root, 1)
	f.blocks = append(make([]int32, 0, len(s.blocks)+1), s.blocks...)
	return f
}

// Become makes s hold what t holds, as Fork would. What they share already stays.
func (s *Sequence) Become(t *Sequence) {
	if s.root.before() != t.root.before() {
		panic(fmt.Sprintf("kv: Sequence.Become: roots %d and %d", none-s.root.before(), none-t.root.before()))
	}
	same := 0
	for same < min(len(s.blocks), len(t.blocks)) && s.blocks[same] == t.blocks[same] {
		same++
	}
	for _, b := range t.blocks[same:] {
		s.c.pool.hold(b)
	}
	// Last first, as in Truncate.
	for _, b := range slices.Backward(s.blocks[same:]) {
		s.c.pool.drop(b)
	}
	s.blocks = append(s.blocks[:same], t.blocks[same:]...)
	s.n, s.sealed, s.settled, s.swapped = t.n, t.sealed, t.settled, t.swapped
	s.setState(t.state, t.at)
}

// Truncate drops positions from n on. Of types with 4 bits, it drops a whole block that others share, or that has no
// residual any more. The next query in it would lack rows in 8 bits. A recurrent state that has seen more goes back to a checkpoint,
// unless Undo has taken it back. The positions after the checkpoint are dropped too. Len tells how many are left.
func (s *Sequence) Truncate(n int) {
	if n < 0 || n > s.n {
		panic(fmt.Sprintf("kv: Sequence.Truncate(%d) of %d positions", n, s.n))
	}
	if l := s.c.opt.BlockLen; n < s.n && n%l != 0 && s.c.residuals.used() && (!s.c.writable(s.blocks[n/l]) || s.c.lacksResidual(s.blocks[n/l])) {
		n -= n % l
	}
	s.forget()
	if n < s.at || n == 0 {
		n = s.rewind(n)
	}
	keep := s.c.blocksFor(n)
	// Last first, so that continuations are evicted before what they continue.
	for i := len(s.blocks) - 1; i >= keep; i-- {
		s.c.pool.drop(s.blocks[i])
	}
	s.blocks = s.blocks[:keep]
	s.n, s.sealed, s.settled = n, min(s.sealed, n/s.c.opt.BlockLen), min(s.settled, n/s.c.opt.BlockLen)
}

// Release gives all blocks back; indexed ones stay cached until needed.
// The sequence must not be used afterwards.
func (s *Sequence) Release() {
	s.Truncate(0)
	s.blocks = nil
	s.c.index.salts.use(s.root, -1)
	s.root = nil
}
