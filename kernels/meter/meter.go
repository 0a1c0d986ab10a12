// Package meter adds up where the time of a pool's callers goes, by kind of kernel.
package meter

import (
	"sync/atomic"
	"time"
)

// Kind is a kind of work that a Meter tells apart.
type Kind uint8

// Products include quantising and arranging their activations.
const (
	Ternary   Kind = iota // products with I1 and I2 matrices
	Grouped               // products with matrices of 4 to 8 bits
	Dense                 // products with F16 and F32 matrices
	Attention             // scores, softmax and weighted sums over the KV cache
	Rows                  // norms, rotary embedding, gates, embedding look-ups, KV stores
	Sampling              // logits to tokens
	kinds
)

var names = [kinds]string{"ternary", "grouped", "dense", "attention", "rows", "sampling"}

// String returns the kernel's name in reports and metrics.
func (k Kind) String() string { return names[k] }

// Cost adds up what one kind of kernel has taken. Time is the callers', who may also
// wait for each other: a kernel that one of n workers runs alone takes 1/n.
type Cost struct {
	Kind  Kind
	Calls int64
	Time  time.Duration
	MACs  int64 // multiply-accumulates; zero for kernels that are about something else
	Idle  int64 // further ones, in lanes of tiles that carried no token
	Bytes int64 // of weights, keys and values, each counted once a call
}

// Meter adds up where the time of a Pool's callers goes. It is off until
// Enable and then costs two readings of the clock a kernel. It is safe for
// concurrent use.
type Meter struct {
	on      atomic.Bool
	workers int
	kinds   [kinds]counts
	busy    atomic.Int64 // ns that workers spent on parts
}

type counts struct{ calls, ns, macs, idle, bytes atomic.Int64 } // ns: times the workers that took part

// New makes a meter of a pool with a number of workers.
func New(workers int) *Meter { return &Meter{workers: workers} }

// Enable begins to measure.
func (m *Meter) Enable() { m.on.Store(true) }

// Enabled reports whether m measures: a caller need not count its work otherwise.
func (m *Meter) Enabled() bool { return m.on.Load() }

// epoch is where the clock starts: reading the time since is cheaper than the time.
var epoch = time.Now()

// Clock returns the time since epoch.
func Clock() time.Duration { return time.Since(epoch) }

// Start begins a kernel and returns the time for Stop; zero when m is off.
func (m *Meter) Start() time.Duration {
	if !m.on.Load() {
		return 0
	}
	return Clock()
}

// Stop counts a kernel that began at start, kept workers of the pool busy and did macs
// multiply-accumulates with bytes of weights, keys and values.
func (m *Meter) Stop(k Kind, start time.Duration, workers int, macs, bytes int64) {
	if start == 0 {
		return
	}
	c := &m.kinds[k]
	c.calls.Add(1)
	c.ns.Add(int64(Clock()-start) * int64(workers))
	c.macs.Add(macs)
	c.bytes.Add(bytes)
}

// StopProduct does as Stop after a product of n rows with a matrix of weights and bytes, by
// tiles that had idle lanes.
func (m *Meter) StopProduct(k Kind, start time.Duration, workers, n, idle int, weights, bytes int64) {
	m.Stop(k, start, workers, int64(n)*weights, bytes)
	if start != 0 && idle > 0 {
		m.kinds[k].idle.Add(int64(idle) * weights)
	}
}

// Costs returns a snapshot of every kind of kernel, in the order of the constants.
func (m *Meter) Costs() []Cost {
	costs := make([]Cost, kinds)
	for k := range costs {
		c := &m.kinds[k]
		costs[k] = Cost{Kind(k), c.calls.Load(), time.Duration(c.ns.Load() / int64(max(1, m.workers))), c.macs.Load(), c.idle.Load(), c.bytes.Load()}
	}
	return costs
}

// Busy returns the time that workers have spent on parts of tasks, summed over
// workers. What is missing to the time of all kernels times the workers is
// waiting: for the last part of a task, or for one that cannot be divided.
func (m *Meter) Busy() time.Duration { return time.Duration(m.busy.Load()) }

// Working counts a worker's time since start.
func (m *Meter) Working(start time.Duration) {
	if start != 0 {
		m.busy.Add(int64(Clock() - start))
	}
}
