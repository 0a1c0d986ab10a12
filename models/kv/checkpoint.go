package kv

import (
	"slices"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// Where checkpoints stand: where a sequence is asked for one, where each piece of a prompt ends, and in a stream every
// checkpointTokens. They stay while there is room. Then those go first that little is computed for without them: what is
// between a checkpoint and the one before it, in proportion to how long nobody has used it. So they thin out with their
// distance from the end of what they are of, by a factor.

// checkpointTokens is the distance between the checkpoints that a decoding stream leaves.
const checkpointTokens = 64

// mostWanted bounds the checkpoints that a sequence is asked for, besides those that it leaves anyway.
const mostWanted = 8

// mostGap bounds the tokens that are counted between two checkpoints.
const mostGap = 2048

// Mark is where a recurrent state belongs as it stands after the first At tokens of its sequence.
type Mark struct {
	At    int
	State []float32
}

// pending is a slot that is to be a checkpoint.
type pending struct {
	slot int32
	at   int // tokens before it
}

// Want asks for a checkpoint after at tokens, which are yet to be computed, or at the last whole block of them. Others
// may begin there.
func (s *recurrent) Want(at int) {
	at = at / s.pool.blockLen * s.pool.blockLen
	i, found := slices.BinarySearch(s.wanted, at)
	if found || at <= s.at || s.pool.size == 0 {
		return
	}
	if s.wanted = slices.Insert(s.wanted, i, at); len(s.wanted) > mostWanted {
		s.wanted = slices.Delete(s.wanted, 0, 1)
	}
}

// Wanted returns what Want has asked for, in order.
func (s *recurrent) Wanted() []int { return s.wanted }

// Advance moves the sequence on before the positions up to n are computed: it gives the numbers of
// the recurrent state, [Shape.State], which the computation changes. The state belongs into each of marks too, as it stands
// there: checkpoints, at most so many and in order, to read until the next Advance. Before Guesses there is one, which
// gets as much of the state as their computation overwrites.
func (s *Sequence) Advance(n, most int) (state []float32, marks []Mark) {
	p := &s.c.states
	if p.size == 0 {
		return nil, nil
	}
	s.unmark()
	p.write(s.state)
	var room [mostWanted + 1]int
	at := s.c.stops(room[:0], s, n)
	s.at = n
	s.given = s.given[:0]
	for _, at := range at[max(0, len(at)-most):] {
		switch {
		case at == n: // Seal takes the state itself, to be copied should it go on
			s.marks = append(s.marks, pending{s.state, n})
			p.hold(s.state)
		case p.FreeStates() > 0:
			i := p.take()
			p.write(i)
			s.marks = append(s.marks, pending{i, at})
			s.given = append(s.given, Mark{at, p.of(i)})
		}
	}
	if s.guesses > 0 {
		s.given = append(s.given[:0], Mark{n - s.guesses, p.of(s.saved)})
	}
	return p.of(s.state), s.given
}

// stops appends where a sequence that goes on to n tokens leaves checkpoints.
func (c *Cache) stops(at []int, s *Sequence, n int) []int {
	end, l := n/c.opt.BlockLen*c.opt.BlockLen, c.opt.BlockLen
	stream := s.guesses > 0 || n == s.at+1
	switch {
	case c.opt.Cold:
		return at
	case !stream: // Open of an equal prompt leaves out the last token
		end = (n - 1) / l * l
	case n%c.checkpointEvery() != 0:
		end = 0
	}
	for _, w := range s.wanted {
		if w > s.at && w <= n && w != end && (!stream || s.guesses == 0) {
			at = append(at, w)
		}
	}
	if end > s.at {
		at = append(at, end)
	}
	slices.Sort(at)
	return at
}

// checkpointEvery is the distance between the checkpoints of a stream: whole blocks.
func (c *Cache) checkpointEvery() int { return cpu.RoundUp(checkpointTokens, c.opt.BlockLen) }

// unmark forgets the checkpoints that were to be kept.
func (s *recurrent) unmark() {
	for _, m := range s.marks {
		s.pool.release(m.slot)
	}
	s.marks = s.marks[:0]
}

// keep makes the marked states checkpoints, once their blocks are in the index.
func (s *Sequence) keep() {
	l := s.c.opt.BlockLen
	s.marks = slices.DeleteFunc(s.marks, func(m pending) bool {
		if m.at > s.sealed*l {
			return false
		}
		b := s.blocks[m.at/l-1]
		if known := s.c.pool.blocks[b].checkpoint; known != none {
			s.pool.useCheckpoint(known)
		} else {
			s.pool.keepCheckpoint(b, m.slot)
		}
		s.pool.release(m.slot)
		return true
	})
}

// rewind gives the sequence the last checkpoint of its first n tokens, or no state,
// and returns how many tokens that is.
func (s *Sequence) rewind(n int) int {
	c, l := s.c, s.c.opt.BlockLen
	blocks := min(s.sealed, n/l)
	for blocks > 0 && c.pool.blocks[s.blocks[blocks-1]].checkpoint == none {
		blocks--
	}
	state := none
	if blocks > 0 {
		state = c.pool.blocks[s.blocks[blocks-1]].checkpoint
		s.pool.useCheckpoint(state)
	}
	s.setState(state, blocks*l)
	return s.at
}

// keepCheckpoint makes slot i, which a sequence holds, the checkpoint of block b.
func (p *states) keepCheckpoint(b, i int32) {
	p.owners[b].checkpoint, p.slots[i].block = i, b
	p.kept++
	p.useCheckpoint(i)
}

// useCheckpoint notes that a checkpoint was of use.
func (p *states) useCheckpoint(i int32) {
	p.clock++
	p.slots[i].used = p.clock
}

// dropCheckpoint takes the checkpoint from block b, if it has one.
func (p *states) dropCheckpoint(b int32) {
	i := p.owners[b].checkpoint
	if i == none {
		return
	}
	s := &p.slots[i]
	p.owners[b].checkpoint, s.block = none, none
	p.kept--
	if s.users == 0 {
		p.spare--
		p.free = append(p.free, i)
	}
}

// dispensable returns the slot of the checkpoint, of those that no sequence shares, without which the least is lost.
func (p *states) dispensable() int32 {
	best, gap, age := none, uint64(0), uint64(0)
	for i := range p.slots {
		s := &p.slots[i]
		if s.users > 0 || s.block == none {
			continue
		}
		if g, a := p.gap(s.block), p.clock-s.used+1; best == none || g*age < gap*a {
			best, gap, age = int32(i), g, a
		}
	}
	return best
}

// gap returns how many blocks are between the checkpoint of block b and the one before it, within bounds.
func (p *states) gap(b int32) (n uint64) {
	for most := uint64(max(1, mostGap/p.blockLen)); b >= 0 && n < most; n++ {
		if b = p.owners[b].parent; b >= 0 && p.owners[b].checkpoint != none {
			return n + 1
		}
	}
	return n
}
