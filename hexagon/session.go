package hexagon

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/hexagon/layout"
)

// session is an open device: its memory, the lock of all that happens there, and the request that
// is being made. Products, attention and steps write packets to the request and then run it.
type session struct {
	name    string
	opt     *Options
	mu      sync.Mutex
	dev     device.Device // nil: not started
	host    *device.Go    // beside dev, of models with experts
	hosting sync.Mutex    // of host
	request request
	probes  uint64
	weights []float32       // of the row that is probed
	counts  *experts.Counts // nil: the model has no experts
	fault   atomic.Pointer[error]
}

// request is the packets of one run, and the memory in which their inputs stand. Everything that
// computes adds packets here; a session runs them.
type request struct {
	mem     []byte // that host and device share; nil: not started
	packets []device.Packet
	hosted  bool // the host computes the packets, and nothing is counted
	work    Work
	spilled spilled
	tables  *fixedTables
	limit   float32 // of the soft caps whose table the device has
}

// fixedTables is where the tables lie that attention reads.
type fixedTables struct {
	powers region // what OpExpTable makes: TCM loses it between runs
	caps   region // the table of soft caps
	unit   region // a tile of the unit matrix
}

// Work counts what a device has done.
type Work struct {
	Runs, Packets   int64 // given to the device
	Lookups, Tiled  int64 // rows that were multiplied by lookups and by tiles, of all products
	Lanes           int64 // of the tiles that these began, 32 a column of tiles
	Queries, Places int64 // of attention: query heads, and rows of the tiles that these began
	Written, Read   int64 // bytes that the host wrote for steps where the device reads them, and read
	device.Counts         // as it counted
}

// region is a part of the shared memory.
type region struct{ at, size uint32 }

// arena lays out the shared memory, after TCM.
type arena struct {
	end     uint64
	largest int // of what is reserved
}

// reserve lays out n bytes in one mapping, 0 for none.
func (a *arena) reserve(n int) uint32 {
	if n == 0 {
		return 0
	}
	at, size := a.end, (uint64(n)+device.Align-1)&^(device.Align-1)
	if at/device.MappingBytes != (at+size-1)/device.MappingBytes {
		at = (at + device.MappingBytes - 1) / device.MappingBytes * device.MappingBytes
	}
	a.end, a.largest = at+size, max(a.largest, n)
	return uint32(min(at, math.MaxUint32))
}

// region lays out a region.
func (a *arena) region(n int) region { return region{a.reserve(n), uint32(n)} }

// TCM: the table of powers of two at its beginning, the tile unit's scales of columns, then
// what an operation needs. A run finds nothing there.
const (
	expTable = 0
	columns  = expTable + device.ExpTableBytes
	scratch  = columns + layout.TileBytes
	tcmEnd   = device.TCMBytes
)

// take takes n bytes of the range that begins at *at, which stays a multiple of a tile's
// size: the tile unit wants it in TCM.
func take(at *uint32, n int) uint32 {
	p := *at
	*at += uint32(roundUp(n, layout.TileBytes))
	return p
}

// add queues a packet.
func (q *request) add(op device.Op, args ...uint32) {
	p := device.Packet{Op: op}
	copy(p.Args[:], args)
	q.packets = append(q.packets, p)
}

// count adds to what the device has done, unless the host does it.
func (q *request) count(what *int64, n int) {
	if !q.hosted {
		*what += int64(n)
	}
}

// err returns the first fault of the device.
func (s *session) err() error {
	if err := s.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// fail makes this the device's fault, if it is the first.
func (s *session) fail(format string, args ...any) error {
	err := fmt.Errorf("the device of "+s.name+" has failed: "+format, args...)
	s.fault.CompareAndSwap(nil, &err)
	return err
}

// run has the device, or the host, compute the queued packets. A failure is the session's fault.
func (s *session) run() error { return s.compute(&s.request) }

// compute is run with another request.
func (s *session) compute(q *request) error {
	if err := s.err(); err != nil || len(q.packets) == 0 {
		q.packets = q.packets[:0]
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opt.Timeout)
	defer cancel()
	if q.hosted {
		return s.runBeside(ctx, q)
	}
	counts, err := s.dev.Run(ctx, q.packets)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = s.fail("it took longer than %v for %d packets: %w", s.opt.Timeout, len(q.packets), err)
	default:
		err = s.fail("%w", err)
	}
	q.work.Runs++
	if s.counts != nil {
		s.counts.Synced++
	}
	q.work.Packets += int64(len(q.packets))
	q.work.Counts.Add(counts)
	q.packets = q.packets[:0]
	return err
}

// runBeside runs the packets on the host, perhaps while the device runs others.
func (s *session) runBeside(ctx context.Context, q *request) error {
	s.hosting.Lock()
	defer s.hosting.Unlock()
	_, err := s.host.Run(ctx, q.packets)
	if err != nil {
		err = s.fail("what the host computes beside it: %w", err)
	}
	q.packets = q.packets[:0]
	return err
}

// close ends the device.
func (s *session) close() error {
	if s.dev == nil {
		return nil
	}
	return s.dev.Close()
}

// probe computes one of the results here as well, another one each time. A device
// that answers nonsense is found out before anybody reads it.
func (s *session) probe(p *product) error {
	s.probes++
	n, m := int(s.probes%uint64(p.n)), int(s.probes*0x9e3779b97f4a7c15>>32%uint64(p.Rows))
	if cap(s.weights) < p.Cols {
		s.weights = make([]float32, p.Cols)
	}
	w, row := s.weights[:p.Cols], p.row(n)
	p.weightsOf(w, m)
	var want, size, sum, most float64
	for k, f := range row {
		v := float64(f) * float64(w[k])
		want, size, sum = want+v, size+math.Abs(v), sum+math.Abs(float64(w[k]))
		most = max(most, math.Abs(float64(f)))
	}
	groups := float64(p.K / p.Group)
	within := sum*leastMost + size/256 + most*(sum*2+groups*math.Abs(float64(p.R[m])))/float64(s.opt.Path.levels())
	if got := float64(p.out(n)[m]); !(math.Abs(got-want) <= within) && want-want == 0 {
		return s.fail("it computed %v where %v ± %v is right, output %d of a matrix of %dx%d", got, want, within, m, p.Rows, p.Cols)
	}
	return nil
}
