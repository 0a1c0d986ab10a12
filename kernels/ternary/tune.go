package ternary

import (
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

// tunedRules are the rules of this machine. The constant ones were measured on few
// machines and reasoned for the rest, so at the first Load of a ternary matrix every
// kernel multiplies a small one, for some milliseconds once a process. All kernels
// give the same bits, so no answer depends on it. The constant rules stay where
// LUTRA_KERNEL is set, and on a machine that is too slow to measure within tuneTime,
// such as an emulated one.
func tunedRules() []rule {
	tuning.Do(func() {
		if tuned = rules; os.Getenv("LUTRA_KERNEL") == "" {
			tuned = tune(rules, tuneTime)
		}
	})
	return tuned
}

var (
	tuning sync.Once
	tuned  []rule
)

const (
	tuneTime   = 50 * time.Millisecond
	tuneRounds = 3 // of which the best counts: other work only adds time
	tuneRows   = 1024
	tuneCols   = 512
)

// tuneTokens are the batch sizes measured; between them the last one counts.
// They lie close where multiply-add and lookup were seen to meet.
var tuneTokens = []int{1, 2, 4, 8, 9, 10, 11, 12, 16, 32, 64}

// timing is the shortest time in which kernel multiplied n tokens.
type timing struct {
	packing matrix.Packing
	n       int
	kernel  *kernel
	took    time.Duration
}

// tune replaces rules by measured ones, or keeps them where there is
// nothing to choose or no time for it.
func tune(rules []rule, limit time.Duration) []rule {
	candidates := measurable()
	if len(candidates) < 2 {
		return rules
	}
	if timings := measure(candidates, limit); timings != nil {
		return choose(rules, timings)
	}
	return rules
}

// margin is by how much a kernel must be faster than the one of the rules to
// take its place: a measurement this short, on a machine that may be busy, can
// err by as much, and what it is for differs by more.
const margin = 1.2

// choose makes rules of timings, which are in order of packing and n.
func choose(rules []rule, timings []timing) []rule {
	var chosen []rule
	for len(timings) > 0 {
		p, n := timings[0].packing, timings[0].n
		usual, best := bestKernel(rules, p, n, n*tuneRows/StripRows), timings[0]
		var expected time.Duration
		for len(timings) > 0 && timings[0].packing == p && timings[0].n == n {
			t := timings[0]
			timings = timings[1:]
			if t.took < best.took {
				best = t
			}
			if t.kernel == usual {
				expected = t.took
			}
		}
		if expected > 0 && float64(expected) <= margin*float64(best.took) {
			best.kernel = usual
		}
		if last := len(chosen) - 1; last < 0 || chosen[last].packing != p || chosen[last].kernel != best.kernel {
			chosen = append(chosen, rule{cpu.Active(), p, n, best.kernel})
		}
	}
	return chosen
}

// measurable are the kernels that this machine has instructions for.
func measurable() []*kernel {
	var list []*kernel
	for _, k := range kernels {
		if k.isa != cpu.Generic && cpu.Has(k.isa) {
			list = append(list, k)
		}
	}
	return list
}

// measure times the kernels on one thread; nil when limit is too short.
func measure(kernels []*kernel, limit time.Duration) []timing {
	begin := time.Now()
	pool := pool.New(1)
	defer pool.Close()
	run := NewRunner(pool, new(stream.Order))
	rng := rand.New(rand.NewPCG(1, 2))
	most := tuneTokens[len(tuneTokens)-1]
	x, y := make([]float32, most*tuneCols), make([]float32, most*tuneRows)
	for i := range x {
		x[i] = rng.Float32() - 0.5
	}
	var timings []timing
	var rows acts.Rows
	var task Task
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		run.only = kernels[0] // Load asks for no rules
		l, err := run.Load(Arbitrary(tuneRows, tuneCols, p, rng))
		if err != nil {
			return nil
		}
		first := len(timings)
		for _, n := range tuneTokens {
			for _, k := range kernels {
				if k.rest == nil || n >= k.tokens { // with less than a tile, its rest runs
					timings = append(timings, timing{p, n, k, time.Hour})
				}
			}
		}
		for range tuneRounds { // one round after another: a disturbance hits each timing once at most
			for i := range timings[first:] {
				t := &timings[first+i]
				run.only = t.kernel
				start := time.Now()
				rows.Set(x, t.n, tuneCols)
				l.Mul(y, &rows, &task)
				t.took = min(t.took, time.Since(start))
				if time.Since(begin) > limit {
					return nil
				}
			}
		}
	}
	return timings
}

// Choice says that from a number of tokens on a kernel multiplies the
// matrices of a packing, as long as they have rows enough for it.
type Choice struct {
	Packing matrix.Packing
	From    int
	Kernel  string // as LUTRA_KERNEL names it
}

// Choices are the kernels this machine's products go to, by packing and
// number of tokens: measured at the first call, or as LUTRA_KERNEL says.
func Choices() []Choice {
	var list []Choice
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		if overridden != nil {
			list = append(list, Choice{p, 1, overridden.name})
			continue
		}
		for _, r := range tunedRules() {
			if r.isa == cpu.Active() && r.packing == p {
				list = append(list, Choice{p, r.from, r.kernel.name})
			}
		}
	}
	return list
}
