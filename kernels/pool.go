package kernels

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Task is a unit of parallel work cut into numbered parts. Tasks live in
// long-lived structs, so handing one to a Pool allocates nothing.
type Task interface {
	// Do runs part i. worker is in [0, Pool.Threads()) and is held by one
	// goroutine at a time: use it to index scratch memory.
	Do(worker, i int)
}

// Pool runs tasks on a fixed set of workers. The calling goroutine is worker 0.
// A Pool serves one caller at a time; Run calls from several goroutines queue.
type Pool struct {
	threads int
	mu      sync.Mutex // one Run at a time
	task    Task
	parts   int64
	next    atomic.Int64
	epoch   atomic.Uint32 // odd bits never matter: a change means new work
	running atomic.Int32
	closed  atomic.Bool
	parked  sync.Mutex
	wake    *sync.Cond
	done    sync.WaitGroup
}

// spins bounds how long an idle worker polls for the next task before it
// parks: long enough to bridge the gaps inside a step, short enough to leave
// the CPU alone between requests.
const spins = 2000

// NewPool starts threads-1 workers; threads < 1 means one a core.
func NewPool(threads int) *Pool {
	if threads < 1 {
		threads = runtime.GOMAXPROCS(0)
	}
	p := &Pool{threads: threads}
	p.wake = sync.NewCond(&p.parked)
	p.done.Add(threads - 1)
	for w := 1; w < threads; w++ {
		go p.worker(w)
	}
	return p
}

// Threads is the number of workers, the caller included.
func (p *Pool) Threads() int { return p.threads }

// Run executes parts [0, parts) of t and returns when all are done.
func (p *Pool) Run(t Task, parts int) {
	if parts <= 0 {
		return
	}
	if p.threads == 1 || parts == 1 {
		for i := range parts {
			t.Do(0, i)
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.task, p.parts = t, int64(parts)
	p.next.Store(0)
	p.running.Store(int32(p.threads - 1))
	p.parked.Lock()
	p.epoch.Add(1)
	p.parked.Unlock()
	p.wake.Broadcast()
	p.drain(0)
	for p.running.Load() != 0 {
		runtime.Gosched()
	}
	p.task = nil
}

// Close stops the workers and waits for them. No Run may be under way.
func (p *Pool) Close() {
	p.closed.Store(true)
	p.parked.Lock()
	p.epoch.Add(1)
	p.parked.Unlock()
	p.wake.Broadcast()
	p.done.Wait()
}

func (p *Pool) drain(worker int) {
	for i := p.next.Add(1) - 1; i < p.parts; i = p.next.Add(1) - 1 {
		p.task.Do(worker, int(i))
	}
}

func (p *Pool) worker(w int) {
	defer p.done.Done()
	seen := uint32(0)
	for {
		for s := 0; p.epoch.Load() == seen && s < spins; s++ {
			if s&63 == 63 {
				runtime.Gosched()
			}
		}
		if p.epoch.Load() == seen {
			p.parked.Lock()
			for p.epoch.Load() == seen {
				p.wake.Wait()
			}
			p.parked.Unlock()
		}
		seen = p.epoch.Load()
		if p.closed.Load() {
			return
		}
		p.drain(w)
		p.running.Add(-1)
	}
}
