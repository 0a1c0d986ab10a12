package pool

import (
	"sync/atomic"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// parker puts one worker to sleep when there is no work.
//
//	awake ──prepare──▶ asleep ──unpark──▶ waking ──▶ woken
//	  ▲──────cancel──────┘                             │
//	  └─────────────────────park──────────────────────┘
type parker struct {
	state  atomic.Uint32
	thread // what the operating system wakes
	_      [cpu.CacheLine]byte
}

const (
	awake uint32 = iota
	asleep
	waking // somebody is about to wake it
	woken
)

// prepare marks the worker as asleep, so that unpark wakes it. The worker then looks
// for work once more and calls cancel or park.
func (b *parker) prepare() {
	b.thread.settle()
	b.state.Store(asleep)
}

// cancel undoes prepare. It is false if the worker is being woken and has to park.
func (b *parker) cancel() bool {
	if !b.state.CompareAndSwap(asleep, awake) {
		return false
	}
	b.thread.leave()
	return true
}

// park returns when the worker has been woken.
func (b *parker) park() {
	for s := b.state.Load(); s != woken; s = b.state.Load() {
		b.thread.wait(&b.state, s)
	}
	b.state.Store(awake)
	b.thread.leave()
}

// unpark wakes the worker if it sleeps, on another processor than those given,
// where there is one.
func (b *parker) unpark(busy ...int) {
	if b.state.CompareAndSwap(asleep, waking) {
		b.thread.avoid(busy)
		b.state.Store(woken)
		b.thread.wake(&b.state)
	}
}
