package kernels

import (
	"sync/atomic"
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// A product of one token reads every weight once, so that it goes as fast as
// memory is read; multiply-adds for a few tokens gain by an even end. Each worker walks through a stretch of its own in the order
// of addresses; it knows what it reads next, in the end even of the next
// product, and has that brought into its cache long before. One that is
// through helps the others from the far ends of their stretches.
//
//	worker 0               worker 1
//	|→→→→→→→→→→→→ ←←←←←←←← |→→→→→→→→→→→→→→→→→→→→→→|
//	              worker 1, after its own

// stream is a matrix as products of few tokens read it.
type stream struct {
	base  uintptr // address of the weights: only ever prefetched, so no pointer
	unit  int     // bytes of a unit, which one worker multiplies at a time
	units int
	after atomic.Pointer[stream] // what was read next the last time, as it will be again
}

func (s *stream) init(data []byte, unit, units int) {
	s.base, s.unit, s.units = uintptr(unsafe.Pointer(unsafe.SliceData(data))), unit, units
}

// at is the address of a unit.
func (s *stream) at(unit int) uintptr { return s.base + uintptr(unit*s.unit) }

// stretchOf is the units [lo, hi) of one of so many workers.
func (s *stream) stretchOf(worker, workers int) (lo, hi int) {
	return worker * s.units / workers, (worker + 1) * s.units / workers
}

// streamed is a product under way.
type streamed interface {
	// multiply does one unit, and may prefetch as many bytes from next on.
	multiply(worker, unit int, next uintptr)
}

// streaming is the Task of a product that streams.
type streaming struct {
	*stream
	product   streamed
	after     *stream // the next product's; nil: not known
	stretches []stretch
}

// run multiplies with so many workers, which are x's.
func (t *streaming) run(c *CPU, x *Acts, s *stream, workers int, product streamed) {
	t.stream, t.product, t.after = s, product, nil
	if !x.pinned {
		if before := c.last.Swap(s); before != nil {
			before.after.Store(s)
		}
		t.after = s.after.Load()
	}
	if cap(t.stretches) < workers {
		t.stretches = make([]stretch, workers)
	}
	t.stretches = t.stretches[:workers]
	for i := range t.stretches {
		t.stretches[i].set(s.stretchOf(i, workers))
	}
	x.run(c.pool, t, workers)
	t.stream, t.product, t.after = nil, nil, nil
}

// Do multiplies what is left of the worker's stretch, then of the others.
// There are as many parts as stretches, but which one it is does not matter.
func (t *streaming) Do(worker, _ int) {
	n := len(t.stretches)
	own := &t.stretches[worker%n]
	for i, follows, ok := own.front(); ok; i, follows, ok = own.front() {
		t.multiply(worker, i, i+1, follows)
	}
	for k := 1; k < n; k++ {
		other := &t.stretches[(worker+k)%n]
		for i, follows, ok := other.back(); ok; i, follows, ok = other.back() {
			t.multiply(worker, i, i-1, follows)
		}
	}
}

// multiply does unit i. The worker goes on with unit next or, where that does
// not follow, with its stretch of the next product.
func (t *streaming) multiply(worker, i, next int, follows bool) {
	at := t.at(i) // of no use, but no harm
	switch {
	case follows:
		at = t.at(next)
	case t.after != nil:
		n := len(t.stretches)
		lo, _ := t.after.stretchOf(worker%n, n)
		at = t.after.at(lo)
	}
	t.product.multiply(worker, i, at)
}

// stretch is the units [lo, hi) that nobody has taken, as hi<<32 | lo, on a
// cache line of its own.
type stretch struct {
	left atomic.Uint64
	_    [cpu.CacheLine - 8]byte
}

func (s *stretch) set(lo, hi int) { s.left.Store(uint64(hi)<<32 | uint64(lo)) }

// front takes the first unit; follows tells whether there is another one.
func (s *stretch) front() (unit int, follows, ok bool) {
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

// back takes the last unit; follows tells whether there is one before it.
func (s *stretch) back() (unit int, follows, ok bool) {
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
