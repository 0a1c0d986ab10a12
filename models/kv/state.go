package kv

import (
	"fmt"
	"math"
	"unsafe"
)

// Models with recurrent layers keep, beside keys and values, a recurrent state: for
// each sequence some numbers that all its tokens have changed, and that cannot
// be taken back. It lies in a slot of a pool. A sequence has one from its first Grow
// on. Forks share it, and it is copied when one of them grows. A checkpoint is a
// slot that an indexed block holds: the state at the end of its tokens, from which
// Open and Truncate can go on. Checkpoints give their slots when a sequence needs one: see
// checkpoint.go. Positions that are guesses can be taken back without one: their step keeps in
// a slot what it overwrites.

// BytesPerState returns the memory of one recurrent state, 0 for models without.
func BytesPerState(shape Shape) int64 {
	if shape.State == 0 {
		return 0
	}
	return 4*int64(shape.State) + int64(unsafe.Sizeof(slot{})) + 4
}

func newStates(size, slots, blockLen int, blocks []block) states {
	p := states{size: size, blockLen: blockLen, owners: blocks}
	if size > 0 {
		p.slots = make([]slot, slots)
		for i := range p.slots {
			p.slots[i].block = none
			p.free = append(p.free, int32(slots-1-i))
		}
	}
	return p
}

// States returns the number of recurrent states in the pool.
func (p *states) States() int { return len(p.slots) }

// FreeStates returns the number of recurrent states that Grow can still obtain: free
// ones, and checkpoints that no sequence shares.
func (p *states) FreeStates() int { return len(p.free) + p.spare }

// Checkpoints returns the number of recurrent states that blocks hold.
func (p *states) Checkpoints() int { return p.kept }

// of returns the numbers of a slot.
func (p *states) of(i int32) []float32 { return p.data[int(i)*p.size : (int(i)+1)*p.size] }

// take hands out a slot that nobody holds, a checkpoint's when none is free.
func (p *states) take() int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		p.slots[i].users = 1
		return i
	}
	i := p.dispensable()
	p.hold(i)
	p.dropCheckpoint(p.slots[i].block)
	return i
}

// hold adds a user to slot i, unless it is none.
func (p *states) hold(i int32) {
	if i == none {
		return
	}
	s := &p.slots[i]
	if s.users == 0 {
		p.spare--
	}
	s.users++
}

// release takes a user from slot i, unless it is none.
func (p *states) release(i int32) {
	if i == none {
		return
	}
	s := &p.slots[i]
	switch s.users--; {
	case s.users < 0:
		panic("kv: a recurrent state released twice")
	case s.users > 0:
	case s.block != none:
		p.spare++
	default:
		p.free = append(p.free, i)
	}
}

// NeedState returns the number of recurrent states, 0 or 1, that Grow would take.
func (s *recurrent) NeedState() int {
	if s.pool.size == 0 {
		return 0
	}
	if s.state == none {
		return 1
	}
	users := s.pool.slots[s.state].users
	for _, m := range s.marks {
		if m.slot == s.state {
			users--
		}
	}
	return int(min(users-1, 1)) // a checkpoint that shares it goes if there is no other slot
}

// own gives the sequence a state that nobody else holds. FreeStates must not
// be less than NeedState.
func (s *recurrent) own() {
	s.unmark()
	s.forget()
	p := s.pool
	switch own := s.state; {
	case p.size == 0:
	case own == none:
		s.state = p.take()
		clear(p.of(s.state))
		p.slots[s.state].version = 0
	case p.slots[own].users == 1 && p.slots[own].block == none:
	case p.slots[own].users == 1 && p.FreeStates() == 0:
		p.dropCheckpoint(p.slots[own].block)
	default:
		s.state = p.take()
		copy(p.of(s.state), p.of(own))
		p.slots[s.state].version = p.slots[own].version
		p.release(own)
	}
}

// StateAt returns how many tokens the recurrent state has seen, and whether nobody shares
// it, so that it may change.
func (s *recurrent) StateAt() (n int, own bool) {
	if s.state == none {
		return s.at, false
	}
	sl := &s.pool.slots[s.state]
	return s.at, sl.users == 1 && sl.block == none
}

// StateVersion returns the version of the numbers of the recurrent state: two of one version are equal,
// and each Advance makes another. 0: they are zeros, or there are none.
func (s *recurrent) StateVersion() uint64 {
	if s.state == none {
		return 0
	}
	return s.pool.slots[s.state].version
}

// write notes that slot i gets other numbers.
func (p *states) write(i int32) {
	p.last++
	p.slots[i].version = p.last
}

// Guesses returns how many positions, the last ones, Undo can take back of a recurrent state.
func (s *recurrent) Guesses() int { return s.guesses }

// Ahead returns how many positions of s after the next one may be guesses. Of a recurrent state these end where a stream
// leaves its next checkpoint, which is made of tokens that are certain.
func (c *Cache) Ahead(s *Sequence) int {
	p, every := &c.states, c.checkpointEvery()
	switch next := s.n + 1; {
	case p.size == 0:
		return math.MaxInt
	case p.FreeStates() <= s.NeedState():
		return 0
	case c.opt.Cold:
		return math.MaxInt
	default:
		return (every - next%every) % every
	}
}

// Guess says that the last n of the positions just grown are guesses, which Undo can take back. With a recurrent state
// that takes another one from the pool: on ErrNoBlocks nothing has changed.
func (s *recurrent) Guess(n int) error {
	switch {
	case n == 0 || s.pool.size == 0:
		return nil
	case s.pool.FreeStates() == 0:
		return ErrNoBlocks
	}
	s.saved, s.guesses = s.pool.take(), n
	return nil
}

// Undo has the recurrent state go back to the first n tokens, which include all that are no guesses. The caller restores
// what the guesses have overwritten, from saved: the state has seen from tokens then. It computes the others up to n
// again. Truncate drops the positions.
func (s *recurrent) Undo(n int) (state, saved []float32, from int) {
	if from = s.at - s.guesses; s.saved == none || n < from || n > s.at {
		panic(fmt.Sprintf("kv: Sequence.Undo(%d) of %d tokens with %d guesses", n, s.at, s.guesses))
	}
	s.unmark()
	s.pool.write(s.state)
	s.at, s.guesses = n, n-from
	return s.pool.of(s.state), s.pool.of(s.saved), from
}

// forget gives back what Undo needs.
func (s *recurrent) forget() {
	s.pool.release(s.saved)
	s.saved, s.guesses = none, 0
}

// setState exchanges the state for slot i, which has seen n tokens.
func (s *recurrent) setState(i int32, n int) {
	s.unmark()
	s.forget()
	s.pool.hold(i)
	s.pool.release(s.state)
	s.state, s.at = i, n
}
