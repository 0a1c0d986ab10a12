package products

import (
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/bench"
	"github.com/lutra-lm/lutra/kernels/choice"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// ChosenTokens are the numbers of tokens at which Chosen compares by default.
var ChosenTokens = []int{1, 2, 4, 8, 16, 32}

// ChosenRow compares the kernel that is used with the fastest one of those that LUTRA_KERNEL could name.
type ChosenRow struct {
	Packing string  `json:"packing"`
	M       int     `json:"m"`
	K       int     `json:"k"`
	N       int     `json:"n"`
	Threads int     `json:"threads"`
	Chosen  string  `json:"chosen"`     // "isa:method"
	GMACs   float64 `json:"gmacs"`      // 10^9 multiply-accumulates a second
	Best    string  `json:"best"`       // "isa:method"
	Forced  float64 `json:"best_gmacs"` // of the best kernel, forced
	Ratio   float64 `json:"ratio"`      // GMACs / Forced; 1 where the best one is used
}

// ChosenRows returns how many rows Chosen yields.
func (o *Options) ChosenRows() int {
	packings := 0
	for _, p := range o.Packings {
		if rules, _ := bench.Rules(p); rules != nil {
			packings++
		}
	}
	return packings * len(o.Shapes) * len(o.Tokens) * len(o.Threads)
}

// Chosen compares the kernels of packings that have several, in turns, a product each, with weights that every
// product reads from memory. The median of the turns' ratios counts. It yields an error, and ends,
// for a shape that cannot be packed.
func Chosen(o Options) iter.Seq2[ChosenRow, error] {
	return func(yield func(ChosenRow, error) bool) {
		for _, threads := range o.Threads {
			pool := pool.New(threads)
			ok := compareChosen(pool, o, yield)
			pool.Close()
			if !ok {
				return
			}
		}
	}
}

func compareChosen(pool *pool.Pool, o Options, yield func(ChosenRow, error) bool) bool {
	for _, p := range o.Packings {
		rules, _ := bench.Rules(p)
		if rules == nil {
			continue
		}
		for _, s := range o.Shapes {
			names, layers, weights, err := loadAll(pool, o.kernels(p), s, p)
			if err != nil {
				yield(ChosenRow{}, err)
				return false
			}
			for _, n := range o.Tokens {
				row := ChosenRow{Packing: p.String(), M: s[0], K: s[1], N: n, Threads: pool.Threads(), Chosen: rules.For(n)}
				row.fill(names, turns(layers, weights, s, n, o.Budget, pool.Threads()))
				if !yield(row, nil) {
					return false
				}
			}
		}
	}
	return true
}

// loadAll loads a matrix as it is by default, the first of layers, and for each of names. Portable code never is the
// fastest.
func loadAll(pool *pool.Pool, all []string, shape [2]int, p matrix.Packing) (names []string, layers []kernels.Linear, weights []byte, err error) {
	stack, err := bench.Stack(shape[0], shape[1], p, 1)
	if err != nil {
		return nil, nil, nil, err
	}
	usual, err := kernels.NewCPU(pool).Load(stack[0])
	if err != nil {
		return nil, nil, nil, err
	}
	layers = append(layers, usual)
	for _, name := range all {
		if name == cpu.Generic.String() || name == "generic:generic" {
			continue
		}
		forced := kernels.NewCPU(pool)
		if p.Ternary() {
			if err := forced.UseTernary(name); err != nil {
				return nil, nil, nil, err
			}
		}
		of, err := load(forced, methodOf(name), stack)
		if err != nil {
			return nil, nil, nil, err
		}
		names, layers = append(names, name), append(layers, of[0])
	}
	return names, layers, stack[0].Data, nil
}

// turns multiplies n tokens by each layer, turn by turn, for about the budget.
func turns(layers []kernels.Linear, weights []byte, shape [2]int, n int, budget time.Duration, threads int) [][]time.Duration {
	x, y := make([]float32, n*shape[1]), make([]float32, n*shape[0])
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	var acts kernels.Acts
	times := make([][]time.Duration, len(layers))
	rounds := func(clock func() time.Duration) {
		for begin, turn := time.Now(), 0; turn < 4 || time.Since(begin) < budget; turn++ {
			for _, i := range rng.Perm(len(layers)) { // each follows one of 256 bits, after which 512 are slow, as often
				choice.Evict(weights)
				start := clock()
				acts.Set(x, n, shape[1])
				layers[i].Mul(y, &acts)
				if took := clock() - start; turn > 0 { // the first is for pages and buffers
					times[i] = append(times[i], took)
				}
			}
		}
	}
	if threads == 1 {
		cpu.OnThread(rounds)
	} else {
		begin := time.Now()
		rounds(func() time.Duration { return time.Since(begin) })
	}
	return times
}

// fill sets what the times of turns say: of the default, and then of each of names.
func (r *ChosenRow) fill(names []string, times [][]time.Duration) {
	macs := float64(r.N) * float64(r.M) * float64(r.K)
	r.GMACs = macs / max(median(times[0]), 1e-9) / 1e9
	r.Best, r.Ratio = r.Chosen, 1
	for i, name := range names {
		ratios := make([]float64, len(times[0]))
		for t, own := range times[0] {
			ratios[t] = max(times[i+1][t], 1).Seconds() / max(own, 1).Seconds()
		}
		if ratio := medianOf(ratios); name != r.Chosen && ratio < r.Ratio {
			r.Best, r.Ratio = name, ratio
		}
	}
	r.Forced = r.GMACs / r.Ratio
}

// median returns the median of times, in seconds.
func median(times []time.Duration) float64 {
	seconds := make([]float64, len(times))
	for i, t := range times {
		seconds[i] = t.Seconds()
	}
	return medianOf(seconds)
}

func medianOf(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
