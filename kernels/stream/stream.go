// Package stream divides products of few tokens among workers, each of which reads
// a shard of a matrix in the order of addresses.
package stream

import (
	"sync/atomic"
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// A product of one token reads every weight once, so memory bounds its speed.
// Products of a few tokens gain when all workers end together. Each worker reads
// a shard of its own in the order of addresses. It knows what comes next, at the
// end of its shard even of the next product, and prefetches that. A worker that has
// finished helps the others from the far ends of their shards.
//
//	worker 0               worker 1
//	|→→→→→→→→→→→→ ←←←←←←←← |→→→→→→→→→→→→→→→→→→→→→→|
//	              worker 1, after its own

// Units is a matrix as products of few tokens read it.
type Units struct {
	base  uintptr // address of the weights: only ever prefetched, so no pointer
	size  int     // bytes of a unit, which one worker multiplies at a time
	n     int
	after atomic.Pointer[Units] // what was read next the last time, as it will be again
}

// Init makes u the n units of size bytes that data consists of.
func (u *Units) Init(data []byte, size, n int) {
	u.base, u.size, u.n = uintptr(unsafe.Pointer(unsafe.SliceData(data))), size, n
}

// At returns the address of a unit.
func (u *Units) At(unit int) uintptr { return u.base + uintptr(unit*u.size) }

// shardOf returns the units [lo, hi) of one of the workers.
func (u *Units) shardOf(worker, workers int) (lo, hi int) {
	return worker * u.n / workers, (worker + 1) * u.n / workers
}

// Order remembers in which order matrices are read.
type Order struct{ last atomic.Pointer[Units] }

// Product is a product under way.
type Product interface {
	// Multiply does one unit, and may prefetch as many bytes from next on.
	Multiply(worker, unit int, next uintptr)
}

// Task is the pool's task of a product that streams.
type Task struct {
	units   *Units
	product Product
	after   *Units // the next product's; nil: not known
	shards  []shard
}

// Run multiplies x with u on the workers, which are x's.
func (t *Task) Run(p *pool.Pool, order *Order, x *acts.Rows, u *Units, workers int, product Product) {
	t.units, t.product, t.after = u, product, nil
	if !x.Pinned() {
		if before := order.last.Swap(u); before != nil {
			before.after.Store(u)
		}
		t.after = u.after.Load()
	}
	if cap(t.shards) < workers {
		t.shards = make([]shard, workers)
	}
	t.shards = t.shards[:workers]
	for i := range t.shards {
		t.shards[i].set(u.shardOf(i, workers))
	}
	x.Run(p, t, workers)
	t.units, t.product, t.after = nil, nil, nil
}

// Do multiplies what is left of the worker's shard, then of the others.
// There are as many parts as shards, but which one it is does not matter.
func (t *Task) Do(worker, _ int) {
	n := len(t.shards)
	own := &t.shards[worker%n]
	for i, follows, ok := own.front(); ok; i, follows, ok = own.front() {
		t.multiply(worker, i, i+1, follows)
	}
	for k := 1; k < n; k++ {
		other := &t.shards[(worker+k)%n]
		for i, follows, ok := other.back(); ok; i, follows, ok = other.back() {
			t.multiply(worker, i, i-1, follows)
		}
	}
}

// multiply does unit i. The worker goes on with unit next or, where that does
// not follow, with its shard of the next product.
func (t *Task) multiply(worker, i, next int, follows bool) {
	at := t.units.At(i) // a useless prefetch, but harmless
	switch {
	case follows:
		at = t.units.At(next)
	case t.after != nil:
		n := len(t.shards)
		lo, _ := t.after.shardOf(worker%n, n)
		at = t.after.At(lo)
	}
	t.product.Multiply(worker, i, at)
}

// shard is the units [lo, hi) that nobody has taken, as hi<<32 | lo, on a
// cache line of its own.
type shard struct {
	left atomic.Uint64
	_    [cpu.CacheLine - 8]byte
}

func (s *shard) set(lo, hi int) { s.left.Store(uint64(hi)<<32 | uint64(lo)) }

// front takes the first unit; follows reports whether there is another one.
func (s *shard) front() (unit int, follows, ok bool) {
	for {
		old := s.left.Load()
		lo, hi := uint32(old), uint32(old>>32)
		if lo >= hi {
			return 0, false, false
		}
		if s.left.CompareAndSwap(old, old+1) {
			return int(lo), lo+1 < hi, true
		}
	}
}

// back takes the last unit; follows reports whether there is one before it.
func (s *shard) back() (unit int, follows, ok bool) {
	for {
		old := s.left.Load()
		lo, hi := uint32(old), uint32(old>>32)
		if lo >= hi {
			return 0, false, false
		}
		if s.left.CompareAndSwap(old, old-1<<32) {
			return int(hi - 1), lo < hi-1, true
		}
	}
}
