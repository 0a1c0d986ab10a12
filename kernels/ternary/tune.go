package ternary

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kept"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

// tunedRules returns the rules of this machine, and why. The constant ones were measured on few
// machines and reasoned for the rest, so at the first Load of a ternary matrix every
// kernel multiplies a small one, for some milliseconds once a process. All kernels
// give the same bits, so no answer depends on it. The constant rules stay where
// LUTRA_KERNEL is set, and on a machine that is too slow to measure within tuneTime,
// such as an emulated one.
func tunedRules() (_ []rule, why string) {
	tuning.Do(func() {
		if tuned, tunedWhy = rules, "the usual ones, for LUTRA_KERNEL is set"; os.Getenv("LUTRA_KERNEL") == "" {
			tuned, tunedWhy = recalled()
			if tuned == nil {
				tuned, tunedWhy = tune(rules, tuneTime)
			}
		}
	})
	return tuned, tunedWhy
}

var (
	tuning   sync.Once
	tuned    []rule
	tunedWhy string
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
// nothing to choose or no time for it. It says which.
func tune(rules []rule, limit time.Duration) (_ []rule, why string) {
	candidates := measurable()
	if len(candidates) < 2 {
		return rules, "nothing to choose"
	}
	timings, took := measure(rules, candidates, limit)
	if timings == nil {
		return rules, fmt.Sprintf("the usual ones, for measuring takes more than %v", limit)
	}
	rules = choose(rules, timings)
	kept.Note(choiceName, written(rules))
	return rules, fmt.Sprintf("measured in %v", took.Round(time.Millisecond))
}

// choiceName is whose choice the rules are in the file of choices, where each is
// packing:from:kernel.
const choiceName = "ternary"

// written returns rules as the file has them.
func written(rules []rule) string {
	var list []string
	for _, r := range rules {
		list = append(list, fmt.Sprintf("%v:%d:%s", r.packing, r.from, r.kernel.name))
	}
	return strings.Join(list, ";")
}

// recalled returns the rules that an earlier run measured; nil: there are none that this
// machine can follow.
func recalled() (list []rule, why string) {
	choice, ok := kept.Recall(choiceName)
	if !ok {
		return nil, ""
	}
	begun := map[matrix.Packing]bool{}
	for text := range strings.SplitSeq(choice, ";") {
		name, rest, _ := strings.Cut(text, ":")
		from, kernelName, _ := strings.Cut(rest, ":")
		p, err := matrix.Parse(name)
		n, notNumber := strconv.Atoi(from)
		at := slices.IndexFunc(measurable(), func(k *kernel) bool { return k.name == kernelName })
		if err != nil || notNumber != nil || at < 0 || !p.Ternary() || !slices.Contains(tuneTokens, n) || begun[p] == (n == 1) {
			return nil, ""
		}
		begun[p] = true
		list = append(list, rule{cpu.Active(), p, n, measurable()[at]})
	}
	if !begun[matrix.I1] || !begun[matrix.I2] {
		return nil, ""
	}
	return list, "measured by an earlier run"
}

// margin is the factor by which a kernel must be faster than the one of the rules to
// take its place: a measurement this short, with others that share caches and units,
// can err by as much, and what it is for differs by more.
const margin = 1.2

// choose makes rules of timings, which are in order of packing and n.
func choose(rules []rule, timings []timing) []rule {
	var list []rule
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
		if last := len(list) - 1; last < 0 || list[last].packing != p || list[last].kernel != best.kernel {
			list = append(list, rule{cpu.Active(), p, n, best.kernel})
		}
	}
	return list
}

// measurable returns the kernels that this machine has instructions for.
func measurable() []*kernel {
	var list []*kernel
	for _, k := range kernels {
		if k.isa != cpu.Generic && cpu.Has(k.isa) {
			list = append(list, k)
		}
	}
	return list
}

// measure times the kernels on one thread, by the time that it computes, of which it tells
// how much it took; nil when limit is too short.
func measure(rules []rule, kernels []*kernel, limit time.Duration) (timings []timing, took time.Duration) {
	cpu.OnThread(func(clock func() time.Duration) {
		begin := clock()
		defer func() { took = clock() - begin }()
		pool := pool.New(1)
		defer pool.Close()
		run := NewRunner(pool, new(stream.Order))
		rng := rand.New(rand.NewPCG(1, 2))
		most := slices.Max(tuneTokens)
		x, y := make([]float32, most*tuneCols), make([]float32, most*tuneRows)
		for i := range x {
			x[i] = rng.Float32() - 0.5
		}
		var rows acts.Rows
		var task Task
		for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
			run.only = kernels[0] // Load asks for no rules
			l, err := run.Load(Arbitrary(tuneRows, tuneCols, p, rng))
			if err != nil {
				timings = nil
				return
			}
			product := func(k *kernel, n int) (took time.Duration, ok bool) {
				run.only = k
				start := clock()
				rows.Set(x[:n*tuneCols], n, tuneCols)
				l.Mul(y, &rows, &task)
				end := clock()
				return end - start, end-begin <= limit
			}
			of, ok := timeKernels(rules, p, kernels, product)
			if !ok {
				timings = nil
				return
			}
			timings = append(timings, of...)
		}
	})
	return timings, took
}

// hopeless is by how much a kernel with fewer tokens may be slower than another one is
// with more, to be timed with more as well: more tokens never take less time.
const hopeless = 2

// timeKernels times kernels with each of tuneTokens by product, which says when there is no
// more time; the one that rules say is always among them. Each timing is the shortest of
// tuneRounds, one round after another: a disturbance hits each of them once at most. Every
// other round goes backwards, for units of 512 bits are slow until they have been used.
func timeKernels(rules []rule, p matrix.Packing, kernels []*kernel, product func(k *kernel, n int) (took time.Duration, ok bool)) ([]timing, bool) {
	for _, k := range kernels { // pages, caches and buffers
		if _, ok := product(k, slices.Max(tuneTokens)); !ok {
			return nil, false
		}
	}
	var timings []timing
	last := make(map[*kernel]time.Duration) // with fewer tokens
	for _, n := range tuneTokens {
		var fit []*kernel
		for _, k := range kernels {
			if k.rest == nil || n >= k.tokens { // with less than a tile, its rest runs
				fit = append(fit, k)
			}
		}
		slices.SortStableFunc(fit, func(a, b *kernel) int { return int(last[a] - last[b]) })
		usual, best := bestKernel(rules, p, n, n*tuneRows/StripRows), time.Hour
		for _, k := range fit {
			if last[k] > hopeless*best && k != usual {
				continue
			}
			took, ok := product(k, n)
			if !ok {
				return nil, false
			}
			timings = append(timings, timing{p, n, k, took})
			last[k], best = took, min(best, took)
		}
	}
	for round := range tuneRounds - 1 {
		for i := range timings {
			if round%2 == 0 {
				i = len(timings) - 1 - i
			}
			t := &timings[i]
			took, ok := product(t.kernel, t.n)
			if !ok {
				return nil, false
			}
			t.took = min(t.took, took)
		}
	}
	return timings, true
}

// Choice says that from a number of tokens on a kernel multiplies the
// matrices of a packing, as long as they have rows enough for it.
type Choice struct {
	Packing matrix.Packing
	From    int
	Kernel  string // as LUTRA_KERNEL names it
}

// Choices returns the kernels this machine's products go to, by packing and
// number of tokens: measured at the first call, or as LUTRA_KERNEL says. It says why.
func Choices() (list []Choice, why string) {
	if overridden != nil {
		return []Choice{{matrix.I1, 1, overridden.name}, {matrix.I2, 1, overridden.name}}, "as LUTRA_KERNEL says"
	}
	rules, why := tunedRules()
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		for _, r := range rules {
			if r.isa == cpu.Active() && r.packing == p {
				list = append(list, Choice{p, r.from, r.kernel.name})
			}
		}
	}
	return list, why
}
