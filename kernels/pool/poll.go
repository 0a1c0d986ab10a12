package pool

import (
	"runtime"
	"time"

	"github.com/lutra-lm/lutra/kernels/meter"
)

// poll waits for what is expected within microseconds. At first it looks all the
// time, then less often, which leaves the core to its other hyper-thread. In the end
// it yields the processor, since the thread that it waits for may need that one.
type poll struct {
	crowded bool // other goroutines may wait for this one's P
	looks   int
	begun   time.Duration
}

// What a poll does between two looks. A pause is some 10 to 40 ns.
const (
	eagerLooks = 512 // nothing between them, for a microsecond: most gaps between tasks are over by then
	quickLooks = 768 // one pause apart
	slowPauses = 16
	slowLooks  = 16 // between two looks at the clock
	crowdLooks = 64 // until other goroutines run
)

// yieldsFrom is the time that a poll keeps its processor from other threads.
const yieldsFrom = 50 * time.Microsecond

// again passes the time until the next look and gives how long the poll has
// lasted, to some microseconds; zero between two looks at the clock.
func (p *poll) again() time.Duration {
	p.looks++
	if p.crowded && p.looks%crowdLooks == 0 {
		runtime.Gosched()
	}
	switch {
	case p.looks < eagerLooks:
		return 0
	case p.looks < quickLooks:
		pause(1)
		return 0
	}
	pause(slowPauses)
	if p.looks%slowLooks != 0 {
		return 0
	}
	now := meter.Clock()
	if p.begun == 0 {
		p.begun = now
	}
	lasted := now - p.begun
	if lasted > yieldsFrom {
		yieldProcessor()
	}
	return lasted
}
