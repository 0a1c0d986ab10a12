package pool

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/meter"
)

// Task is a unit of parallel work cut into numbered parts. Tasks live in
// long-lived structs, so handing one to a Pool allocates nothing.
type Task interface {
	// Do runs part i. worker is in [0, Pool.Threads()) and is held by one
	// goroutine at a time: use it to index scratch memory. Do must not call
	// Run of the same pool.
	Do(worker, i int)
}

// Pool runs tasks on a fixed set of workers. The calling goroutine is worker 0.
// A Pool serves one caller at a time; Run calls from several goroutines queue.
//
// One atomic counter hands out the parts. Run waits for parts and not for workers, so
// a worker that comes late and finds no part left delays nobody.
type Pool struct {
	threads int
	crowded bool       // no P is left for other goroutines while all workers poll
	mu      sync.Mutex // one Run at a time
	task    Task       // written before left, read only by holders of a part
	parts   int64
	meter   *meter.Meter
	observe func(t Task, parts int, took time.Duration)

	left    atomic.Int64  // parts not handed out; below zero when late workers asked
	pending atomic.Int64  // parts not finished
	epoch   atomic.Uint32 // counts hand-outs: a change means new work
	asleep  atomic.Int32  // workers that are parked, or look once more before they park
	steps   atomic.Int32  // Begin less End
	closed  atomic.Bool

	panicked atomic.Pointer[parallel.Panic] // of the first part of a Run that has

	parkers  []parker      // where workers park
	caller   atomic.Int32  // the processor of the last to announce; below zero: unknown
	finished chan struct{} // the last part's finisher wakes a parked Run
	waiting  atomic.Bool   // Run is parked on finished
	done     sync.WaitGroup
}

// How long workers poll for the next task before they park. Waking a parked thread
// takes its processor out of sleep, which takes 50 µs and more on a virtual one;
// meanwhile the other workers have done its parts. So a worker stays awake during a
// step, whatever the caller does between tasks, and afterwards until a step that
// follows at once has begun. Even then a worker parks after a while: a caller that is silent
// for so long has lost its processor, and may get the worker's. In
// a crowded pool other goroutines may wait for a worker to park.
const (
	patience = 2 * time.Millisecond
	linger   = 200 * time.Microsecond
	briefly  = 30 * time.Microsecond
)

// New starts threads-1 workers; threads < 1 means cpu.Cores(). A worker that polls
// keeps a P of the Go scheduler. Workers poll for long only if GOMAXPROCS is greater
// than threads, so that one P is left for other goroutines.
func New(threads int) *Pool {
	if threads < 1 {
		threads = cpu.Cores()
	}
	p := &Pool{threads: threads, crowded: threads >= runtime.GOMAXPROCS(0), finished: make(chan struct{}, 1)}
	p.meter = meter.New(threads)
	p.parkers = make([]parker, threads)
	p.done.Add(threads - 1)
	for w := 1; w < threads; w++ {
		go p.worker(w)
	}
	return p
}

// Threads returns the number of workers, the caller included.
func (p *Pool) Threads() int { return p.threads }

// Meter returns what counts the time of the pool's callers, once enabled.
func (p *Pool) Meter() *meter.Meter { return p.meter }

// Observe has every later Run tell f its task, how many parts that had, and how long it
// took. Only tools use it, to learn what a step consists of.
func (p *Pool) Observe(f func(t Task, parts int, took time.Duration)) { p.observe = f }

// Begin announces a step, many tasks with little between them: workers wake up
// and stay awake until End. Steps may overlap.
func (p *Pool) Begin() {
	p.steps.Add(1)
	if p.asleep.Load() > 0 {
		p.announce()
	}
}

// End ends a step that Begin announced.
func (p *Pool) End() { p.steps.Add(-1) }

// Run executes parts [0, parts) of t and returns when all are done. It panics with a
// *parallel.Panic of a part, whatever worker had it, when the others are done.
func (p *Pool) Run(t Task, parts int) {
	if parts <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.observe != nil {
		defer func(begun time.Duration) { p.observe(t, parts, meter.Clock()-begun) }(meter.Clock())
	}
	if p.threads == 1 || parts == 1 {
		start := p.meter.Start()
		for i := range parts {
			t.Do(0, i)
		}
		p.meter.Working(start)
		return
	}
	p.task, p.parts = t, int64(parts)
	p.pending.Store(p.parts)
	p.left.Store(p.parts)
	p.announce()
	p.drain(0)
	p.await()
	p.task = nil
	if failed := p.panicked.Swap(nil); failed != nil {
		panic(failed)
	}
}

// Close stops the workers and waits for them. No Run may be under way.
func (p *Pool) Close() {
	p.closed.Store(true)
	p.epoch.Add(1)
	for w := 1; w < p.threads; w++ { // not through other workers: those who know already are gone
		p.parkers[w].unpark()
	}
	p.done.Wait()
}

// announce makes workers look. A worker raises asleep before its last look at
// epoch, so one of the two always sees the other.
func (p *Pool) announce() {
	p.epoch.Add(1)
	if p.asleep.Load() > 0 {
		p.caller.Store(int32(currentCPU()))
		p.rouse(0)
	}
}

// rouse wakes the parked workers that worker w is to wake. Each wakes two, so that
// many are awake soon.
func (p *Pool) rouse(w int) {
	here := currentCPU()
	for i := 2*w + 1; i <= min(2*w+2, p.threads-1); i++ {
		p.parkers[i].unpark(int(p.caller.Load()), here)
	}
}

// drain runs parts until none is left. Holding an unfinished part keeps task
// and parts in place: Run cannot return before it is counted.
func (p *Pool) drain(worker int) {
	ran, start := int64(0), p.meter.Start()
	for p.left.Load() > 0 {
		p.some(worker, &ran)
	}
	if ran == 0 {
		return
	}
	p.meter.Working(start)
	if p.pending.Add(-ran) == 0 && p.waiting.CompareAndSwap(true, false) {
		p.finished <- struct{}{}
	}
}

// some runs parts, and counts them in ran, until none is left or one has panicked.
func (p *Pool) some(worker int, ran *int64) {
	defer func() {
		if failed := parallel.Caught(recover()); failed != nil {
			*ran++
			p.panicked.CompareAndSwap(nil, failed)
		}
	}()
	for p.left.Load() > 0 { // many cores read a line sooner than they change it one after another
		l := p.left.Add(-1)
		if l < 0 {
			break
		}
		p.task.Do(worker, int(p.parts-1-l))
		*ran++
	}
}

// await returns when no part is pending.
func (p *Pool) await() {
	w := poll{crowded: p.crowded}
	for lasted := time.Duration(0); lasted < patience; lasted = w.again() {
		if p.pending.Load() == 0 {
			return
		}
	}
	// A late finisher of an earlier Run may wake this one too soon: hence the loop.
	// The one that clears waiting sends one token, so each that is sent is received.
	for p.pending.Load() != 0 {
		p.waiting.Store(true)
		if p.pending.Load() == 0 && p.waiting.CompareAndSwap(true, false) {
			return
		}
		<-p.finished
	}
}

func (p *Pool) worker(w int) {
	defer p.done.Done()
	for seen := uint32(0); ; {
		seen = p.next(w, seen)
		if p.asleep.Load() > 0 {
			p.rouse(w)
		}
		if p.closed.Load() {
			return
		}
		p.drain(w)
	}
}

// next waits for epoch to leave seen, polling at first and parked thereafter.
func (p *Pool) next(w int, seen uint32) uint32 {
	wait := poll{crowded: p.crowded}
	for lasted := time.Duration(0); lasted == 0 || lasted < p.limit(); lasted = wait.again() {
		if e := p.epoch.Load(); e != seen {
			return e
		}
	}
	b := &p.parkers[w]
	for b.prepare(); ; b.prepare() {
		p.asleep.Add(1)
		if p.epoch.Load() == seen || !b.cancel() {
			b.park()
		}
		p.asleep.Add(-1)
		if e := p.epoch.Load(); e != seen {
			return e
		}
	}
}

// limit returns how long a worker polls now.
func (p *Pool) limit() time.Duration {
	switch {
	case p.crowded:
		return briefly
	case p.steps.Load() > 0:
		return patience
	}
	return linger
}
