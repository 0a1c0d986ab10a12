package bench

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"time"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Machine holds the measured limits of kernels on this machine.
type Machine struct {
	ISA     string  `json:"isa"`
	Threads int     `json:"threads"`      // cores that may be used
	Peak    float64 `json:"peak_gmacs"`   // 10^9 int8 multiply-accumulates a second, one core; zero if not known
	PeakOf  string  `json:"peak_of"`      // the instructions it was measured with
	PeakFMA float64 `json:"peak_fma"`     // 10^9 float32 multiply-accumulates a second, one core; zero if not known
	ReadOne float64 `json:"read_gbs"`     // 10^9 bytes a second from memory, one thread
	ReadAll float64 `json:"read_gbs_all"` // and all threads
}

// Measure measures for about eight times budget.
func Measure(budget time.Duration) Machine {
	m := Machine{ISA: cpu.Active().String(), Threads: cpu.Cores()}
	ints := peakOf(meter.Ternary)
	m.Peak, m.PeakOf = ints.rate(budget), ints.of
	m.PeakFMA = peakOf(meter.Dense).rate(budget)
	data := cpu.Aligned[uint8](Uncached)
	for i := 0; i < len(data); i += 64 {
		data[i] = 1 // a page never written maps to the one zero page, which a cache holds
	}
	m.ReadOne = readRate(data, 1, budget)
	m.ReadAll = max(readRate(data, m.Threads, budget), m.ReadOne)
	return m
}

// MACs returns what threads could multiply-accumulate together in kernels of kind k,
// in 10^9 a second; infinite where that is not known.
func (m *Machine) MACs(k meter.Kind, threads int) float64 {
	peak := m.Peak
	if k == meter.Dense || k == meter.Attention {
		peak = m.PeakFMA
	}
	if peak == 0 {
		return math.Inf(1)
	}
	return peak * float64(min(threads, m.Threads))
}

// Read returns what threads could read from memory together, in 10^9 bytes a second.
func (m *Machine) Read(threads int) float64 {
	if threads > 1 {
		return m.ReadAll
	}
	return m.ReadOne
}

// loop multiplies and accumulates macs numbers a round, with the instructions of a name.
type loop struct {
	run  func(rounds int)
	macs int
	of   string
}

// rate returns the loop's rate, in 10^9 a second; zero if there is none.
func (l loop) rate(budget time.Duration) float64 {
	const rounds = 10000
	if l.run == nil {
		return 0
	}
	return rounds * float64(l.macs) / BestOfEach(1, budget, 1, func(int) { l.run(rounds) }).Seconds() / 1e9
}

// Bound returns the bound of several tokens times w: the multiply units.
func (m *Machine) Bound(w *matrix.Matrix, threads int) float64 {
	peak := m.Peak
	if w.Packing.Kind() == meter.Dense {
		peak = m.PeakFMA
	}
	return peak * float64(min(threads, m.Threads))
}

// readTask reads data in parts.
type readTask struct {
	data []byte
	part int // bytes of a part, a multiple of 256
	read func(b []byte)
}

const readPart = 1 << 20

func (r *readTask) Do(_, i int) { r.read(r.data[i*r.part : min((i+1)*r.part, len(r.data))]) }

// readRate measures how fast threads read data together, in GB/s.
func readRate(data []byte, threads int, budget time.Duration) float64 {
	pool := pool.New(threads)
	defer pool.Close()
	const chunk = 16 // parts timed together
	chunks, rate := len(data)/(chunk*readPart), 0.0
	for _, read := range readers() {
		best := BestOfEach(threads, budget, chunks, func(i int) { pool.Run(&readTask{data[i*chunk*readPart:], readPart, read}, chunk) })
		rate = max(rate, float64(chunks*chunk)*readPart/best.Seconds()/1e9)
	}
	return rate
}

// readSum keeps the compiler from dropping the loads.
var readSum atomic.Uint64

func readBytesGeneric(b []byte) {
	sum := uint64(0)
	for ; len(b) >= 32; b = b[32:] {
		sum |= binary.LittleEndian.Uint64(b) | binary.LittleEndian.Uint64(b[8:]) | binary.LittleEndian.Uint64(b[16:]) | binary.LittleEndian.Uint64(b[24:])
	}
	readSum.Store(sum)
}
