// Package bench measures what a machine could do at most, and products beside that. Nothing that serves imports it.
package bench

//go:generate go -C ../_gen run . -family peak -pkg bench -out ../bench/asm_amd64.s -stubs ../bench/asm_amd64.go
//go:generate go -C ../_gen run . -header vex_amd64.h -to ../bench
//go:generate go -C ../_gen run . -header amx_amd64.h -to ../bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

// Stack makes matrices of one shape, of least bytes or more together. Bytes
// of 0x3c are weights and scales of ordinary size in every packing in bands.
func Stack(rows, cols int, p matrix.Packing, least int) ([]*matrix.Matrix, error) {
	if rows < 1 || cols < 1 || cols > ternary.MaxCols || rows > 1<<24 {
		return nil, fmt.Errorf("%w: no benchmark of %d x %d", matrix.ErrShape, rows, cols)
	}
	if p.Kind() == meter.Grouped && cols%grouped.UnitCols(p) != 0 {
		return nil, fmt.Errorf("%w: no benchmark of %v with %d columns", matrix.ErrShape, p, cols)
	}
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	var stack []*matrix.Matrix
	for size := 0; size < least; size += len(stack[len(stack)-1].Data) {
		if p.Ternary() {
			stack = append(stack, ternary.Arbitrary(rows, cols, p, rng))
			continue
		}
		w := &matrix.Matrix{Rows: rows, Cols: cols, Packing: p, Data: cpu.Aligned[byte](kernels.DataSize(rows, cols, p)), Levels: grouped.LevelsIQ4}
		for i := range w.Data {
			w.Data[i] = 0x3c
		}
		stack = append(stack, w)
	}
	return stack, nil
}

// BesidePeak times a product of macs on one thread, and in turns with it the multiply unit of its kind
// for about as long: a core's clock changes within milliseconds. Both are in 10^9 a second.
func BesidePeak(budget time.Duration, of meter.Kind, macs float64, multiply func(i int)) (product, peak float64) {
	unit := peakOf(of)
	rounds := max(1000, int(macs)/unit.macs)
	best := bestTimes(1, budget, 2, func(i int) {
		if i == 0 {
			multiply(0)
		} else {
			unit.run(rounds)
		}
	})
	return macs / best[0].Seconds() / 1e9, float64(rounds) * float64(unit.macs) / best[1].Seconds() / 1e9
}

// BesideReading times multiply(i) of all matrices, and in turns with them the reading of
// the same bytes by as many workers: what memory gives can change by half within seconds.
func BesideReading(budget time.Duration, p *pool.Pool, stack []*matrix.Matrix, multiply func(i int)) (products, reading time.Duration) {
	n, ways := len(stack), readers()
	best := bestTimes(p.Threads(), budget, n*(1+len(ways)), func(i int) {
		if i < n {
			multiply(i)
			return
		}
		data := stack[i%n].Data
		data = data[:len(data)&^255]
		part := (len(data)/(readParts*p.Threads()) + 255) &^ 255
		p.Run(&readTask{data, part, ways[i/n-1]}, (len(data)+part-1)/max(part, 1))
	})
	for i := range ways {
		if t := sum(best[n*(1+i):][:n]); reading == 0 || t < reading {
			reading = t
		}
	}
	return sum(best[:n]), reading
}

// readParts is the number of parts of a matrix that a worker reads.
const readParts = 8

// BestOfEach returns the sum of the shortest runs of f(0) to f(n-1).
func BestOfEach(threads int, budget time.Duration, n int, f func(i int)) time.Duration {
	return sum(bestTimes(threads, budget, n, f))
}

func sum(times []time.Duration) (total time.Duration) {
	for _, t := range times {
		total += t
	}
	return max(total, 1)
}

// bestTimes returns the shortest runs of f(0) to f(n-1) on threads, run in rotation. Other work on
// the machine only adds time, and a short run is likely to escape it. One thread is timed by its
// processor time, which leaves out most of that work. Of such times the lowest tenth counts, since a
// system subtracts its hypervisor's time, and at times too much.
func bestTimes(threads int, budget time.Duration, n int, f func(i int)) []time.Duration {
	times := make([][]time.Duration, n)
	rounds := func(clock func() time.Duration) {
		for i := range n {
			f(i) // pages, caches and buffers
		}
		for begin, runs := time.Now(), 0; runs < 3 || time.Since(begin) < budget; runs++ {
			for i := range times {
				start := clock()
				f(i)
				times[i] = append(times[i], clock()-start)
			}
		}
	}
	part := 10
	if threads == 1 {
		cpu.OnThread(rounds)
	} else {
		begin := time.Now()
		rounds(func() time.Duration { return time.Since(begin) })
		part = math.MaxInt
	}
	best := make([]time.Duration, n)
	for i, t := range times {
		slices.Sort(t)
		best[i] = t[len(t)/part]
	}
	return best
}

// Uncached is a size of which no cache of this machine holds more than a quarter.
var Uncached = min(max(4*cpuid.CPU.Cache.L3, 4*cpuid.CPU.Cache.L2, 64<<20), 1<<30)
