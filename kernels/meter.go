package kernels

import (
	"sync/atomic"
	"time"
)

// Kernel is a kind of work that a Meter tells apart.
type Kernel uint8

// Products include quantising and arranging their activations.
const (
	KernelTernary   Kernel = iota // products with I1 and I2 matrices
	KernelGrouped                 // products with matrices of 4 to 8 bits
	KernelDense                   // products with F16 and F32 matrices
	KernelAttention               // scores, softmax and weighted sums over the KV cache
	KernelRows                    // norms, rotary embedding, gates, embedding look-ups, KV stores
	KernelSampling                // logits to tokens
	kernelKinds
)

var kernelNames = [kernelKinds]string{"ternary", "grouped", "dense", "attention", "rows", "sampling"}

// String is the kernel's name in reports and metrics.
func (k Kernel) String() string { return kernelNames[k] }

// Cost is what one kind of kernel has taken. Time is the callers', who may also
// wait for each other: a kernel that one of n workers runs alone takes 1/n.
type Cost struct {
	Kernel Kernel
	Calls  int64
	Time   time.Duration
	MACs   int64 // multiply-accumulates; zero for kernels that are about something else
	Idle   int64 // further ones, in lanes of tiles that carried no token
	Bytes  int64 // of weights, keys and values, each counted once a call
}

// Meter adds up where the time of a Pool's callers goes. It is off until
// Enable and then costs two readings of the clock a kernel. It is safe for
// concurrent use.
type Meter struct {
	on      atomic.Bool
	workers int
	kinds   [kernelKinds]meterCounts
	busy    atomic.Int64 // ns that workers spent on parts
}

type meterCounts struct{ calls, ns, macs, idle, bytes atomic.Int64 } // ns: times the workers that took part

// Enable begins to measure.
func (m *Meter) Enable() { m.on.Store(true) }

// Enabled tells whether m measures: a caller need not count its work otherwise.
func (m *Meter) Enabled() bool { return m.on.Load() }

// meterEpoch is where clocks start: reading the time since is cheaper than the time.
var meterEpoch = time.Now()

// Start is the begin of a kernel, for Stop; zero when m is off.
func (m *Meter) Start() time.Duration {
	if !m.on.Load() {
		return 0
	}
	return time.Since(meterEpoch)
}

// Stop counts a kernel that began at start, kept so many of the pool's workers
// and did macs multiply-accumulates with weights, keys and values of so many bytes.
func (m *Meter) Stop(k Kernel, start time.Duration, workers int, macs, bytes int64) {
	if start == 0 {
		return
	}
	c := &m.kinds[k]
	c.calls.Add(1)
	c.ns.Add(int64(time.Since(meterEpoch)-start) * int64(workers))
	c.macs.Add(macs)
	c.bytes.Add(bytes)
}

// stopProduct is Stop after the product of x, on p, with w, by tiles that had
// so many idle lanes.
func (p *Pool) stopProduct(start time.Duration, w *Matrix, x *Acts, idle int) {
	k := KernelGrouped
	switch {
	case w.Packing.Ternary():
		k = KernelTernary
	case w.Packing.dense():
		k = KernelDense
	}
	size := int64(w.Rows) * int64(w.Cols)
	p.meter.Stop(k, start, x.threads(p), int64(x.n)*size, int64(len(w.Data)))
	if start != 0 && idle > 0 {
		p.meter.kinds[k].idle.Add(int64(idle) * size)
	}
}

// Costs is a snapshot of every kind of kernel, in the order of the constants.
func (m *Meter) Costs() []Cost {
	costs := make([]Cost, kernelKinds)
	for k := range costs {
		c := &m.kinds[k]
		costs[k] = Cost{Kernel(k), c.calls.Load(), time.Duration(c.ns.Load() / int64(max(1, m.workers))), c.macs.Load(), c.idle.Load(), c.bytes.Load()}
	}
	return costs
}

// Busy is the time that workers have spent on parts of tasks, summed over
// workers. What is missing to the time of all kernels times the workers is
// waiting: for the last part of a task, or for one that cannot be divided.
func (m *Meter) Busy() time.Duration { return time.Duration(m.busy.Load()) }

// working counts a worker's time since start.
func (m *Meter) working(start time.Duration) {
	if start != 0 {
		m.busy.Add(int64(time.Since(meterEpoch) - start))
	}
}
