package kv

// Observer learns what enters and leaves the index of prefixes. It is called by the
// goroutine that owns the cache, in the midst of a step, and must not keep it waiting.
type Observer interface {
	// Stored tells that a block with these tokens, valid during the call, follows the
	// indexed block parent, or none: -1. root is its sequence's root, nil: Open's.
	// No other indexed block has the same tokens after the same prefix of that root. Nothing is told of
	// blocks with a salt.
	Stored(block, parent int32, root *Root, tokens []int32)
	// Removed tells that a block without continuations is found no more.
	Removed(block int32)
	// Cleared tells that no block is found any more.
	Cleared()
}

// Observe has o called from now on. The index must be empty. A cold cache, whose index
// finds nothing, is not observed.
func (c *Cache) Observe(o Observer) {
	if len(c.index.first) > 0 {
		panic("kv: Cache.Observe: there are indexed blocks")
	}
	if !c.opt.Cold {
		c.index.observer = o
	}
}

// size counts the blocks in the index.
func (x *index) size() (n int) {
	for i := range x.blocks {
		if x.blocks[i].indexed {
			n++
		}
	}
	return n
}
