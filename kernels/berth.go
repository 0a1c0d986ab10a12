package kernels

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"sync/atomic"
)

// berth is where a worker sleeps when there is no work.
//
//	awake ──lie──▶ asleep ──call──▶ calling ──▶ called
//	  ▲──────rise────┘                            │
//	  └──────────────────sleep────────────────────┘
type berth struct {
	state  atomic.Uint32
	thread // what the operating system wakes
	_      [cpu.CacheLine]byte
}

const (
	awake uint32 = iota
	asleep
	calling // somebody is about to wake it
	called
)

// lie makes the worker one that call wakes. It looks once more for work and
// then calls rise or sleep.
func (b *berth) lie() {
	b.thread.settle()
	b.state.Store(asleep)
}

// rise ends what lie began; false: a call is on its way, and the worker has to sleep.
func (b *berth) rise() bool {
	if !b.state.CompareAndSwap(asleep, awake) {
		return false
	}
	b.thread.leave()
	return true
}

// sleep returns when the worker has been called.
func (b *berth) sleep() {
	for s := b.state.Load(); s != called; s = b.state.Load() {
		b.thread.wait(&b.state, s)
	}
	b.state.Store(awake)
	b.thread.leave()
}

// call wakes the worker if it sleeps, on another processor than those given,
// where there is one.
func (b *berth) call(busy ...int) {
	if b.state.CompareAndSwap(asleep, calling) {
		b.thread.avoid(busy)
		b.state.Store(called)
		b.thread.wake(&b.state)
	}
}
