package batcher

import (
	"slices"
	"sync"
)

// mailbox passes sequences from callers to the step loop. A caller changes its
// sequence under the sequence's lock and then posts it; once a step the loop
// looks at what was posted. Each sequence is in the box at most once, so the
// number of open sequences bounds it.
type mailbox struct {
	mu          sync.Mutex
	news        []*Sequence
	interactive bool                   // some of them are interactive
	taken       []*Sequence            // the loop's last take, for its memory
	open        map[*Sequence]struct{} // entered, not left
	queued      int                    // of them, not begun
	serial      uint64
	draining    bool
	err         error         // set once the engine has stopped
	wake        chan struct{} // capacity 1: the box is not empty
	empty       chan struct{} // closed when nothing is open any more, made by the first waiter
}

// enter registers new sequences of one class; queue of them wait to begin. A
// quarter of the places is reserved for interactive ones.
func (b *mailbox) enter(opt *Options, queue int, seqs ...*Sequence) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	room, places := opt.Sequences, opt.Queue
	if len(seqs) > 0 && seqs[0].background {
		room, places = room-room/4, places-places/4
	}
	switch {
	case b.err != nil:
		return b.err
	case b.draining && queue > 0:
		return ErrClosed
	case len(b.open)+len(seqs) > room || queue > 0 && b.queued+queue > places:
		return ErrBusy
	}
	b.queued += queue
	for _, s := range seqs {
		b.serial++
		s.id = b.serial
		if s.age == 0 {
			s.age = s.id
			if s.background {
				s.age += overtakable
			}
		}
		b.open[s] = struct{}{}
	}
	return nil
}

// patience is how many later sequences may overtake a background one: blocks go
// to interactive ones first, but no search waits forever.
const overtakable = 1 << 14

// begun takes one sequence out of the queue.
func (b *mailbox) begun() {
	b.mu.Lock()
	b.queued--
	b.mu.Unlock()
}

// leave forgets a sequence.
func (b *mailbox) leave(s *Sequence, begun bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.open[s]; !ok {
		return
	}
	delete(b.open, s)
	if !begun {
		b.queued--
	}
	if len(b.open) == 0 && b.empty != nil {
		close(b.empty)
		b.empty = nil
	}
}

// post asks the loop to look at seqs, all of them before its next step.
func (b *mailbox) post(seqs ...*Sequence) {
	b.mu.Lock()
	for _, s := range seqs {
		if b.err == nil && !s.posted {
			s.posted = true
			b.news = append(b.news, s)
			b.interactive = b.interactive || !s.background
		}
	}
	b.mu.Unlock()
	b.poke()
}

// urgent reports whether interactive sequences have been posted.
func (b *mailbox) urgent() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.interactive
}

// poke wakes the loop.
func (b *mailbox) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take empties the box and reports whether interactive sequences were in it. The
// list is valid until the next call.
func (b *mailbox) take() (news []*Sequence, interactive bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.taken)
	interactive, b.interactive = b.interactive, false
	b.news, b.taken = b.taken[:0], b.news
	for _, s := range b.taken {
		s.posted = false
	}
	return b.taken, interactive
}

// drain refuses new sequences and returns a channel that is closed when none
// is open.
func (b *mailbox) drain() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draining = true
	if len(b.open) == 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	if b.empty == nil {
		b.empty = make(chan struct{})
	}
	return b.empty
}

// stop refuses everything with err and returns the open sequences, oldest first.
func (b *mailbox) stop(err error) []*Sequence {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.news, b.interactive = nil, false
	return b.sequences()
}

// all are the open sequences, oldest first.
func (b *mailbox) all() []*Sequence {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sequences()
}

// sequences is all. Locked.
func (b *mailbox) sequences() []*Sequence {
	seqs := make([]*Sequence, 0, len(b.open))
	for s := range b.open {
		seqs = append(seqs, s)
	}
	slices.SortFunc(seqs, older)
	return seqs
}

// stopped is the reason why the engine has stopped, if it has.
func (b *mailbox) stopped() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
