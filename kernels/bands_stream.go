package kernels

import "sync/atomic"

// streamKernel is a bandKernel with tiles for a single token. Every weight is
// then read once, so that the product goes as fast as memory is read.
type streamKernel interface {
	bandKernel
	// streamBands is the number of bands of a tile; zero: there are no such tiles.
	streamBands() int
	// stream adds to y[16·streamBands] the products of the bands from s on with the
	// only row of x, and has as many bytes from next on come closer meanwhile.
	stream(y []float32, s int, x *Acts, next *byte)
}

// bandStream is the Task of a product of one token. Each worker walks through
// a stretch of its own in the order of addresses, so that what it reads next
// is known and can be asked for long before; one that is through helps the
// others from the far ends of theirs.
//
//	worker 0        worker 1
//	|→→→→→→→     ←←←|→→→→→→→→→→→→→→→→|
//	         worker 1, after its own
type bandStream struct {
	bandMul
	kern      streamKernel
	stretches []stretch
}

// stretch is the tiles [lo, hi) that nobody has taken, as hi<<32 | lo, on a
// cache line of its own.
type stretch struct {
	left atomic.Uint64
	_    [cacheLine - 8]byte
}

func (s *stretch) set(lo, hi int) { s.left.Store(uint64(hi)<<32 | uint64(lo)) }

// front takes the first tile; follows tells whether there is another one.
func (s *stretch) front() (tile int, follows, ok bool) {
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

// back takes the last tile; follows tells whether there is one before it.
func (s *stretch) back() (tile int, follows, ok bool) {
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

// run multiplies on pool, or in the worker x is pinned to.
func (m *bandStream) run(l *bandLinear, y []float32, x *Acts) {
	m.bandMul, m.kern = bandMul{l, y, x}, l.stream
	workers, per := x.threads(l.cpu.pool), l.stream.streamBands()
	tiles := (l.w.bands() + per - 1) / per
	if cap(m.stretches) < workers {
		m.stretches = make([]stretch, workers)
	}
	m.stretches = m.stretches[:workers]
	for i := range m.stretches {
		m.stretches[i].set(i*tiles/workers, (i+1)*tiles/workers)
	}
	x.run(l.cpu.pool, m, workers)
	m.bandMul, m.kern = bandMul{}, nil
}

// Do multiplies what is left of the worker's stretch, then of the others.
// There are as many parts as stretches, but which one it is does not matter.
func (m *bandStream) Do(worker, _ int) {
	n := len(m.stretches)
	own := &m.stretches[worker%n]
	for tile, follows, ok := own.front(); ok; tile, follows, ok = own.front() {
		m.tile(worker, tile, tile+1, follows)
	}
	for i := 1; i < n; i++ {
		other := &m.stretches[(worker+i)%n]
		for tile, follows, ok := other.back(); ok; tile, follows, ok = other.back() {
			m.tile(worker, tile, tile-1, follows)
		}
	}
}

// tile multiplies one tile, the last ones band by band where the matrix ends
// within it.
func (m *bandStream) tile(worker, tile, next int, follows bool) {
	per, whole := m.kern.streamBands(), m.w.Rows/bandRows
	s := tile * per
	if s+per <= whole {
		if !follows {
			next = tile
		}
		y := m.y[s*bandRows : (s+per)*bandRows]
		clear(y)
		m.kern.stream(y, s, m.x, &m.w.Data[next*per*m.w.bandBytes()])
		return
	}
	scratch := &m.cpu.bands[worker]
	for ; s < m.w.bands(); s++ {
		m.manyTokens(scratch, s, 1)
	}
}
