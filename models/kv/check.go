package kv

import "fmt"

// Check verifies that every block is free, indexed or referenced exactly as
// counted, given all sequences that are in use (none: references are not
// counted). It is for tests and idle moments.
func (c *Cache) Check(seqs ...*Sequence) error {
	state := make([]int32, len(c.pool.blocks)) // free and cached places found
	for _, b := range c.pool.free {
		state[b]++
		if m := &c.pool.blocks[b]; m.refs != 0 || m.indexed {
			return fmt.Errorf("kv: free block %d has %d references, indexed %t", b, m.refs, m.indexed)
		}
	}
	cached, prev := 0, none
	for b := c.index.oldest; b != none; b = c.pool.blocks[b].younger {
		m := &c.pool.blocks[b]
		if state[b]++; m.refs != 0 || !m.indexed || m.older != prev {
			return fmt.Errorf("kv: cached block %d has %d references, indexed %t, neighbour %d, want %d", b, m.refs, m.indexed, m.older, prev)
		}
		if m.parent >= 0 && state[m.parent] != 0 {
			return fmt.Errorf("kv: block %d would be evicted before its continuation %d", m.parent, b)
		}
		prev, cached = b, cached+1
	}
	if cached != c.index.cached || prev != c.index.youngest {
		return fmt.Errorf("kv: %d cached blocks up to %d, counted %d up to %d", cached, prev, c.index.cached, c.index.youngest)
	}
	for b := range c.pool.blocks {
		if held := c.pool.blocks[b].refs > 0; state[b] > 1 || held == (state[b] == 1) {
			return fmt.Errorf("kv: block %d has %d references and is free or cached %d times", b, c.pool.blocks[b].refs, state[b])
		}
	}
	if err := c.index.check(); err != nil {
		return err
	}
	if err := c.states.check(); err != nil {
		return err
	}
	if err := c.residuals.check(); err != nil {
		return err
	}
	if len(seqs) == 0 {
		return nil
	}
	if err := c.states.checkUsers(seqs); err != nil {
		return err
	}
	if err := c.index.checkSalts(seqs); err != nil {
		return err
	}
	return c.checkRefs(seqs)
}

// check verifies that every recurrent state is free, held or a checkpoint.
func (p *states) check() error {
	spare, kept, free := 0, 0, make([]int, len(p.slots))
	for _, i := range p.free {
		free[i]++
	}
	for i := range p.slots {
		s := &p.slots[i]
		if s.block != none && (p.owners[s.block].checkpoint != int32(i) || !p.owners[s.block].indexed) {
			return fmt.Errorf("kv: state %d is the checkpoint of block %d, which has %d", i, s.block, p.owners[s.block].checkpoint)
		}
		if s.block != none {
			kept++
		}
		idle := 0
		if s.users == 0 && s.block == none {
			idle = 1
		} else if s.users == 0 {
			spare++
		}
		if free[i] != idle {
			return fmt.Errorf("kv: state %d of %d users is free %d times", i, s.users, free[i])
		}
	}
	if spare != p.spare || kept != p.kept {
		return fmt.Errorf("kv: %d checkpoints, %d to spare, counted %d and %d", kept, spare, p.kept, p.spare)
	}
	for b := range p.owners {
		if i := p.owners[b].checkpoint; i != none && p.slots[i].block != int32(b) {
			return fmt.Errorf("kv: block %d has checkpoint %d, which is of block %d", b, i, p.slots[i].block)
		}
	}
	return nil
}

// checkUsers counts the users of the recurrent states.
func (p *states) checkUsers(seqs []*Sequence) error {
	users := make([]int32, len(p.slots))
	for _, s := range seqs {
		if s.at > s.n || s.at > 0 && s.state == none {
			return fmt.Errorf("kv: state %d of a sequence of %d tokens has seen %d", s.state, s.n, s.at)
		}
		for _, i := range []int32{s.state, s.saved} {
			if i != none {
				users[i]++
			}
		}
		for _, m := range s.marks {
			users[m.slot]++
		}
	}
	for i, n := range users {
		if p.slots[i].users != n {
			return fmt.Errorf("kv: state %d counts %d users, has %d", i, p.slots[i].users, n)
		}
	}
	return nil
}

// checkRefs counts the references that seqs hold.
func (c *Cache) checkRefs(seqs []*Sequence) error {
	refs, rows := make([]int32, len(c.pool.blocks)), make([]int, len(c.pool.blocks))
	for _, s := range seqs {
		if want := c.blocksFor(s.n); len(s.blocks) != want {
			return fmt.Errorf("kv: sequence of %d tokens has %d blocks, want %d", s.n, len(s.blocks), want)
		}
		for i, b := range s.blocks {
			refs[b]++
			n := min(c.opt.BlockLen, s.n-i*c.opt.BlockLen)
			switch part := n < c.opt.BlockLen; {
			case !c.residuals.used():
			case rows[b] != 0 && rows[b] != n:
				return fmt.Errorf("kv: sequences have %d and %d rows of block %d", rows[b], n, b)
			case part && c.lacksResidual(b):
				return fmt.Errorf("kv: block %d of %d rows has no residual", b, n)
			case i < s.settled && !c.lacksResidual(b):
				return fmt.Errorf("kv: settled block %d has a residual", b)
			}
			rows[b] = n
			if i < s.sealed && !c.pool.blocks[b].indexed {
				return fmt.Errorf("kv: sealed block %d is not indexed", b)
			}
		}
	}
	for b, n := range refs {
		if c.pool.blocks[b].refs != n {
			return fmt.Errorf("kv: block %d counts %d references, has %d", b, c.pool.blocks[b].refs, n)
		}
	}
	return nil
}

// check verifies that every residual is free, or of a block that sequences hold and the index does not.
func (p *residuals) check() error {
	free := make([]int, len(p.of))
	for _, i := range p.free {
		free[i]++
	}
	for i, b := range p.of {
		if b == none && free[i] != 1 || b != none && (free[i] != 0 || p.blocks[b].residual != int32(i)) {
			return fmt.Errorf("kv: residual %d of block %d is free %d times", i, b, free[i])
		}
	}
	for b := range p.blocks {
		if m := &p.blocks[b]; m.residual != none && (p.of[m.residual] != int32(b) || m.refs == 0 || m.indexed) {
			return fmt.Errorf("kv: block %d of %d references, indexed %t, has residual %d, which is of block %d", b, m.refs, m.indexed, m.residual, p.of[m.residual])
		}
	}
	return nil
}

// check verifies that the tree and the hash table describe the same blocks.
func (x *index) check() error {
	found := 0
	for hash, b := range x.first {
		for ; b != none; b = x.blocks[b].sameHash {
			m := &x.blocks[b]
			if found++; found > len(x.blocks) {
				return fmt.Errorf("kv: more index entries than blocks")
			}
			if !m.indexed || m.hash != hash || hash != x.hash(m.parent, x.tokensOf(b)) {
				return fmt.Errorf("kv: block %d does not belong under hash %x", b, hash)
			}
		}
	}
	children := make([]int32, len(x.blocks))
	for b := range x.blocks {
		m := &x.blocks[b]
		if !m.indexed {
			continue
		}
		found--
		if m.parent < 0 {
			continue
		}
		p := &x.blocks[m.parent]
		if children[m.parent]++; !p.indexed || m.refs > 0 && p.refs == 0 {
			return fmt.Errorf("kv: block %d has lost its parent %d", b, m.parent)
		}
	}
	if found != 0 {
		return fmt.Errorf("kv: %d blocks too many in the index", found)
	}
	if len(x.salts.by) != len(x.salts.number) {
		return fmt.Errorf("kv: %d salted roots have %d numbers", len(x.salts.by), len(x.salts.number))
	}
	for b := range x.blocks {
		if m := &x.blocks[b]; m.indexed && m.children != children[b] {
			return fmt.Errorf("kv: block %d counts %d continuations, has %d", b, m.children, children[b])
		}
	}
	return nil
}

// checkSalts counts the users of the salted roots.
func (x *index) checkSalts(seqs []*Sequence) error {
	users := map[*Root]int{}
	for _, s := range seqs {
		if s.root != nil && s.root.Salt != (Salt{}) {
			users[s.root]++
		}
	}
	for b := range x.blocks {
		if m := &x.blocks[b]; m.indexed && m.parent < 0 && x.salts.salted(m.parent) != nil {
			users[x.salts.salted(m.parent)]++
		}
	}
	if len(users) != len(x.salts.by) {
		return fmt.Errorf("kv: %d salted roots are known, %d are of use", len(x.salts.by), len(users))
	}
	for r, n := range users {
		if r.users != n || x.salts.by[r.key] != r {
			return fmt.Errorf("kv: salted root %d counts %d users, has %d", r.Number, r.users, n)
		}
	}
	return nil
}
