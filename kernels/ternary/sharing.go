package ternary

import (
	"sync/atomic"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// Parts of a lookup kernel are large, because each part builds its own tables. With
// one or two parts a worker, workers do not finish together. But sums are integers,
// which may be added in any order, and a part goes through its columns chunk by
// chunk and builds the tables of one chunk at a time. So a worker that finds no part
// left takes chunks from the far end of another worker's part and adds them up by
// itself. The one that finishes last adds both sums and writes the results.
//
//	worker 0   |→→→→→→→→→→→→→→ part 0 →→→→→→→→→→→→→→| then helps:
//	worker 1   |→→→→→→→→→→→→→→→→→ part 1 →→→→→ ←←←←←←| columns

// sharedKernel says how two workers do a kernel's part.
type sharedKernel struct {
	chunk func(p matrix.Packing) int // blocks of a chunk
	// add adds the products of chunksAtOnce chunks at most to the worker's sums, or
	// sets these to them if they are its first, and writes y if they are the last
	// and nobody has helped.
	add func(m *Task, r *segmentRun, s *scratch, strips, tokens, blocks extent, first, last bool)
	// merge writes y from the sums of two workers.
	merge func(m *Task, s, other *scratch, strips, tokens extent)
}

// A worker takes chunksAtOnce chunks at a time while more than fewChunks are left.
const (
	chunksAtOnce = 2
	fewChunks    = 3
)

// partSlot is a worker's part.
type partSlot struct {
	left   atomic.Uint64 // a claim: the chunks that nobody has taken
	done   atomic.Int64  // chunks whose products are in sums that wait to be merged
	owner  int
	helper int  // valid from when done counts its chunks
	lent   bool // another worker is going to read the owner's sums
	_      [cpu.CacheLine - 33]byte
}

// claim is part<<41 | helped<<40 | hi<<20 | lo, for chunks [lo, hi).
type claim uint64

const (
	claimBits       = 20 // of a chunk's number: the rows of MaxCols have fewer
	helped    claim = 1 << (2 * claimBits)
)

func newClaim(part, lo, hi int) claim {
	return claim(part)<<(2*claimBits+1) | claim(hi)<<claimBits | claim(lo)
}

func (c claim) part() int { return int(c >> (2*claimBits + 1)) }
func (c claim) hi() int   { return int(c >> claimBits & (1<<claimBits - 1)) }
func (c claim) lo() int   { return int(c & (1<<claimBits - 1)) }
func (c claim) left() int { return c.hi() - c.lo() }

// atOnce returns how many of the n chunks that are left to take.
func atOnce(n int) int {
	if n > fewChunks {
		return chunksAtOnce
	}
	return min(n, 1)
}

// front takes chunks [lo, hi) for the owner, none when none is left. c is the
// claim without them.
func (s *partSlot) front() (lo, hi int, c claim) {
	for {
		c = claim(s.left.Load())
		n := atOnce(c.left())
		if n == 0 || s.left.CompareAndSwap(uint64(c), uint64(c)+uint64(n)) {
			return c.lo(), c.lo() + n, c + claim(n)
		}
	}
}

// back takes chunks [lo, hi) for a helper: to begin with, if nobody helps and
// there are enough.
func (s *partSlot) back(begin bool) (lo, hi int, c claim) {
	for {
		c = claim(s.left.Load())
		n := atOnce(c.left())
		if begin && (c&helped != 0 || c.left() < chunksAtOnce) {
			n = 0
		}
		if n == 0 || s.left.CompareAndSwap(uint64(c), uint64(c-claim(n)<<claimBits|helped)) {
			return c.hi() - n, c.hi(), c
		}
	}
}

// sharing is the Task of a product whose parts are shared.
type sharing struct {
	m     *Task
	parts int
	given atomic.Int64 // parts
	slots []partSlot   // by worker
}

// run does all parts on the workers.
func (t *sharing) run(m *Task, parts, workers int) {
	t.begin(m, parts)
	m.x.Run(m.l.run.pool, t, workers)
	t.m = nil
}

func (t *sharing) begin(m *Task, parts int) {
	t.m, t.parts = m, parts
	t.given.Store(0)
	if threads := m.l.run.pool.Threads(); len(t.slots) < threads {
		t.slots = make([]partSlot, threads)
	}
	for i := range t.slots {
		t.slots[i].left.Store(0)
		t.slots[i].owner = i
		t.slots[i].lent = false
	}
}

// Do does parts as long as there are some, then helps.
func (t *sharing) Do(worker, _ int) {
	for i := int(t.given.Add(1)) - 1; i < t.parts; i = int(t.given.Add(1)) - 1 {
		t.own(worker, i)
	}
	for k := 1; k < len(t.slots) && !t.slots[worker].lent; k++ {
		t.help(worker, (worker+k)%len(t.slots))
	}
}

// own does a part, or what a helper leaves of it.
func (t *sharing) own(worker, part int) {
	r, strips, tokens := t.m.part(part)
	if r.kernel.shared == nil {
		r.kernel.mul(t.m, r, &t.m.l.run.scratch[worker], strips, tokens)
		return
	}
	slot, total := &t.slots[worker], t.chunks(r.kernel.shared)
	slot.done.Store(0)
	lo, hi := 0, atOnce(total) // never left to others, so that there are sums to merge
	c := newClaim(part, hi, total)
	slot.left.Store(uint64(c))
	for hi > lo {
		t.add(worker, part, lo, hi, lo == 0, c&helped == 0 && c.left() == 0)
		lo, hi, c = slot.front()
	}
	if c&helped != 0 {
		t.end(worker, slot, part, lo)
	}
}

// help takes chunks of another worker's part, as long as there are some.
func (t *sharing) help(worker, owner int) {
	slot := &t.slots[owner]
	lo, hi, c := slot.back(true)
	if lo == hi {
		return
	}
	slot.helper = worker
	taken, part := 0, c.part()
	for hi > lo {
		t.add(worker, part, lo, hi, taken == 0, false)
		taken += hi - lo
		lo, hi, _ = slot.back(false)
	}
	t.end(worker, slot, part, taken)
}

// end ends a worker's work on a shared part; the last one of two merges their sums.
func (t *sharing) end(worker int, slot *partSlot, part, chunks int) {
	m := t.m
	r, strips, tokens := m.part(part)
	if slot.done.Add(int64(chunks)) < int64(t.chunks(r.kernel.shared)) {
		t.slots[worker].lent = true
		return
	}
	own, other := &m.l.run.scratch[slot.owner], &m.l.run.scratch[slot.helper]
	r.kernel.shared.merge(m, own, other, strips, tokens)
}

// chunks returns the number of chunks of a part.
func (t *sharing) chunks(k *sharedKernel) int {
	n := k.chunk(t.m.l.w.Packing)
	return (t.m.l.blocks + n - 1) / n
}

// add adds chunks [lo, hi) of a part to the worker's sums.
func (t *sharing) add(worker, part, lo, hi int, first, last bool) {
	m := t.m
	r, strips, tokens := m.part(part)
	k := r.kernel.shared
	n := k.chunk(m.l.w.Packing)
	k.add(m, r, &m.l.run.scratch[worker], strips, tokens, extent{lo * n, min(hi*n, m.l.blocks)}, first, last)
}
