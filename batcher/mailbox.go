package batcher

import (
	"cmp"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/models/kv"
)

// mailbox passes sequences from callers to the step loop. A caller changes its
// sequence under the sequence's lock and then posts it; once a step the loop
// looks at what was posted. Each sequence is in the box at most once, so the
// number of open sequences bounds it.
type mailbox[S letter] struct {
	mu          sync.Mutex
	mostOpen    int
	mostQueued  int
	news        []S
	interactive bool           // some of them are interactive
	taken       []S            // the loop's last take, for its memory
	open        map[S]struct{} // entered, not left
	queued      int            // of them, not begun
	serial      uint64
	draining    bool
	err         error         // set once the engine has stopped
	wake        chan struct{} // capacity 1: the box is not empty
	empty       chan struct{} // closed when nothing is open any more, made by the first waiter
}

// letter stands for sequences, which mailboxes hold.
type letter interface {
	comparable
	own() *ticket
}

// ticket registers a sequence with a mailbox.
type ticket struct {
	id         uint64 // order of entry
	age        uint64 // rank of the sequence that was opened, whose forks this one descends from
	posted     bool   // guarded by the mailbox
	background bool   // opened by OpenBackground, or a fork of one that was
	salt       kv.Salt
}

func (t *ticket) own() *ticket { return t }

// older orders sequences by age: forks stand after their parent and before
// whatever was opened later; background ones count as younger than they are.
func older[S letter](a, b S) int {
	x, y := a.own(), b.own()
	return cmp.Or(cmp.Compare(x.age, y.age), cmp.Compare(x.id, y.id))
}

// newMailbox makes one in which at most mostOpen sequences are open, and mostQueued not begun.
func newMailbox[S letter](mostOpen, mostQueued int) *mailbox[S] {
	return &mailbox[S]{mostOpen: mostOpen, mostQueued: mostQueued, open: map[S]struct{}{}, wake: make(chan struct{}, 1)}
}

// enter registers new sequences of one class; queue of them wait to begin. A
// quarter of the room is reserved for interactive ones.
func (b *mailbox[S]) enter(queue int, seqs ...S) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	open, queued := b.mostOpen, b.mostQueued
	if len(seqs) > 0 && seqs[0].own().background {
		open, queued = open-open/4, queued-queued/4
	}
	switch {
	case b.err != nil:
		return b.err
	case b.draining && queue > 0:
		return ErrClosed
	case len(b.open)+len(seqs) > open || queue > 0 && b.queued+queue > queued:
		return ErrBusy
	}
	b.queued += queue
	for _, s := range seqs {
		b.serial++
		t := s.own()
		t.id = b.serial
		if t.age == 0 {
			t.age = t.id
			if t.background {
				t.age += overtakable
			}
		}
		b.open[s] = struct{}{}
	}
	return nil
}

// overtakable bounds how many later sequences may overtake a background one: blocks go
// to interactive ones first, but no search waits forever.
const overtakable = 1 << 14

// begun takes one sequence out of the queue.
func (b *mailbox[S]) begun() {
	b.mu.Lock()
	b.queued--
	b.mu.Unlock()
}

// posted reports whether something waits to be taken.
func (b *mailbox[S]) posted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.news) > 0
}

// leave forgets a sequence.
func (b *mailbox[S]) leave(s S, begun bool) {
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
func (b *mailbox[S]) post(seqs ...S) {
	b.mu.Lock()
	for _, s := range seqs {
		if t := s.own(); b.err == nil && !t.posted {
			t.posted = true
			b.news = append(b.news, s)
			b.interactive = b.interactive || !t.background
		}
	}
	b.mu.Unlock()
	b.poke()
}

// urgent reports whether interactive sequences have been posted.
func (b *mailbox[S]) urgent() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.interactive
}

// poke wakes the loop.
func (b *mailbox[S]) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take empties the box and reports whether interactive sequences were in it. The
// list is valid until the next call.
func (b *mailbox[S]) take() (news []S, interactive bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.taken)
	interactive, b.interactive = b.interactive, false
	b.news, b.taken = b.taken[:0], b.news
	for _, s := range b.taken {
		s.own().posted = false
	}
	return b.taken, interactive
}

// drain refuses new sequences and returns a channel that is closed when none
// is open.
func (b *mailbox[S]) drain() <-chan struct{} {
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
func (b *mailbox[S]) stop(err error) []S {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	b.news, b.interactive = nil, false
	return b.sequences()
}

// all lists the open sequences, oldest first.
func (b *mailbox[S]) all() []S {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sequences()
}

// sequences lists the open sequences, oldest first. Locked.
func (b *mailbox[S]) sequences() []S {
	seqs := make([]S, 0, len(b.open))
	for s := range b.open {
		seqs = append(seqs, s)
	}
	slices.SortFunc(seqs, older[S])
	return seqs
}

// stopped returns the reason why the engine has stopped, if it has.
func (b *mailbox[S]) stopped() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
