package pool

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
)

// countTask counts how often each part ran and holds a worker's number to one
// goroutine at a time.
type countTask struct {
	t    *testing.T
	runs []atomic.Int32
	held []atomic.Bool
}

func (c *countTask) Do(worker, i int) {
	if !c.held[worker].CompareAndSwap(false, true) {
		c.t.Errorf("worker %d is held twice", worker)
	}
	c.runs[i].Add(1)
	c.held[worker].Store(false)
}

func TestPoolRunsEveryPartOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 8} {
		pool := New(threads)
		held := make([]atomic.Bool, threads)
		var callers sync.WaitGroup
		for range 3 { // several callers queue
			callers.Go(func() {
				for round := range 400 {
					parts := round % 17
					c := &countTask{t: t, runs: make([]atomic.Int32, parts), held: held}
					pool.Run(c, parts)
					for i := range c.runs {
						if n := c.runs[i].Load(); n != 1 {
							t.Errorf("threads %d, parts %d: part %d ran %d times", threads, parts, i, n)
						}
					}
				}
			})
		}
		callers.Wait()
		pool.Close()
	}
}

func TestPoolWorkersWakeFromParking(t *testing.T) {
	const threads = 7 // the caller wakes two, and each of these two more
	pool := New(threads)
	defer pool.Close()
	for range 20 {
		for pool.asleep.Load() < threads-1 { // every worker has parked
			runtime.Gosched()
		}
		// Each part waits for all to have begun: only awake workers can end it.
		m := &meetTask{}
		m.all.Add(threads)
		pool.Run(m, threads)
	}
}

type meetTask struct{ all sync.WaitGroup }

func (m *meetTask) Do(_, _ int) {
	m.all.Done()
	m.all.Wait()
}

func TestPoolRunAllocatesNothing(t *testing.T) {
	sweep.NoEmulator(t)
	pool := New(2)
	defer pool.Close()
	c := &countTask{t: t, runs: make([]atomic.Int32, 8), held: make([]atomic.Bool, 2)}
	if a := testing.AllocsPerRun(100, func() { pool.Run(c, 8) }); a != 0 {
		t.Errorf("Run allocates %v times", a)
	}
}

type nothing struct{}

func (nothing) Do(_, _ int) {}

func BenchmarkPoolRun(b *testing.B) {
	pool := New(0)
	defer pool.Close()
	for b.Loop() {
		pool.Run(nothing{}, pool.Threads())
	}
}

// handOff is done when every worker has taken a part: the time until the last one looks.
type handOff struct {
	threads int64
	arrived atomic.Int64
}

func (h *handOff) Do(_, _ int) {
	goal := (h.arrived.Add(1) + h.threads - 1) / h.threads * h.threads
	for h.arrived.Load() < goal {
	}
}

func BenchmarkPoolHandOff(b *testing.B) {
	pool := New(0)
	defer pool.Close()
	h := &handOff{threads: int64(pool.Threads())}
	for b.Loop() {
		pool.Run(h, pool.Threads())
	}
}

func TestAStepKeepsWorkersAwake(t *testing.T) {
	pool := new(Pool) // not crowded, and without workers
	pool.Begin()
	if got := pool.limit(); got != patience {
		t.Errorf("workers poll for %v during a step, want %v", got, patience)
	}
	pool.Begin()
	pool.End()
	if got := pool.limit(); got != patience {
		t.Errorf("workers poll for %v when one of two steps is over, want %v", got, patience)
	}
	pool.End()
	if got := pool.limit(); got != linger {
		t.Errorf("workers poll for %v after a step, want %v", got, linger)
	}
}

// A worker may learn that the pool closes while it still hands on the last
// hand-out, and be gone before it could hand on the closing.
func TestCloseWakesEveryWorkerWhoeverIsGoneAlready(t *testing.T) {
	for range sweep.Cases(50, 200) {
		p := New(8)
		for range 2 {
			for p.asleep.Load() < int32(p.threads)-1 {
				runtime.Gosched()
			}
			p.Run(nothing{}, 16)
		}
		p.Close()
	}
}
