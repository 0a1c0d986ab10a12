package kv

import "fmt"

// Check verifies that every block is free, indexed or referenced exactly as
// counted, given all sequences that are in use (none: references are not
// counted). It is for tests and idle moments.
func (c *Cache) Check(seqs ...*Sequence) error {
	state := make([]int32, len(c.blocks)) // free and cached places found
	for _, b := range c.free {
		state[b]++
		if m := &c.blocks[b]; m.refs != 0 || m.indexed {
			return fmt.Errorf("kv: free block %d has %d references, indexed %t", b, m.refs, m.indexed)
		}
	}
	cached, prev := 0, none
	for b := c.index.oldest; b != none; b = c.blocks[b].younger {
		m := &c.blocks[b]
		if state[b]++; m.refs != 0 || !m.indexed || m.older != prev {
			return fmt.Errorf("kv: cached block %d has %d references, indexed %t, neighbour %d, want %d", b, m.refs, m.indexed, m.older, prev)
		}
		if m.parent != none && state[m.parent] != 0 {
			return fmt.Errorf("kv: block %d would be evicted before its continuation %d", m.parent, b)
		}
		prev, cached = b, cached+1
	}
	if cached != c.index.cached || prev != c.index.youngest {
		return fmt.Errorf("kv: %d cached blocks up to %d, counted %d up to %d", cached, prev, c.index.cached, c.index.youngest)
	}
	for b := range c.blocks {
		if held := c.blocks[b].refs > 0; state[b] > 1 || held == (state[b] == 1) {
			return fmt.Errorf("kv: block %d has %d references and is free or cached %d times", b, c.blocks[b].refs, state[b])
		}
	}
	if err := c.checkIndex(); err != nil {
		return err
	}
	if len(seqs) == 0 {
		return nil
	}
	return c.checkRefs(seqs)
}

// checkRefs counts the references that seqs hold.
func (c *Cache) checkRefs(seqs []*Sequence) error {
	refs := make([]int32, len(c.blocks))
	for _, s := range seqs {
		if want := c.blocksFor(s.n); len(s.blocks) != want {
			return fmt.Errorf("kv: sequence of %d tokens has %d blocks, want %d", s.n, len(s.blocks), want)
		}
		for i, b := range s.blocks {
			refs[b]++
			if i < s.sealed && !c.blocks[b].indexed {
				return fmt.Errorf("kv: sealed block %d is not indexed", b)
			}
		}
	}
	for b, n := range refs {
		if c.blocks[b].refs != n {
			return fmt.Errorf("kv: block %d counts %d references, has %d", b, c.blocks[b].refs, n)
		}
	}
	return nil
}

// checkIndex verifies that the tree and the hash table describe the same blocks.
func (c *Cache) checkIndex() error {
	found := 0
	for hash, b := range c.index.first {
		for ; b != none; b = c.blocks[b].sameHash {
			m := &c.blocks[b]
			if found++; found > len(c.blocks) {
				return fmt.Errorf("kv: more index entries than blocks")
			}
			if !m.indexed || m.hash != hash || hash != c.index.hash(m.parent, c.tokensOf(b)) {
				return fmt.Errorf("kv: block %d does not belong under hash %x", b, hash)
			}
		}
	}
	children := make([]int32, len(c.blocks))
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
		if children[m.parent]++; !p.indexed || m.refs > 0 && p.refs == 0 {
			return fmt.Errorf("kv: block %d has lost its parent %d", b, m.parent)
		}
	}
	if found != 0 {
		return fmt.Errorf("kv: %d blocks too many in the index", found)
	}
	for b := range c.blocks {
		if m := &c.blocks[b]; m.indexed && m.children != children[b] {
			return fmt.Errorf("kv: block %d counts %d continuations, has %d", b, m.children, children[b])
		}
	}
	return nil
}
