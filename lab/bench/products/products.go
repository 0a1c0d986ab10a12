// Package products measures products of all kernels against what the machine could do at most.
package products

import (
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/bench"
	"github.com/lutra-lm/lutra/kernels/choice"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

// Options says what Products measures.
type Options struct {
	Packings []matrix.Packing // what to multiply with
	Kernels  []string         // "isa:method", of those that Kernels lists; none: all of them
	Shapes   [][2]int         // M × K of the matrices
	Tokens   []int            // N
	Threads  []int            // workers
	Budget   time.Duration    // for one row, at least one product apart
}

// DefaultOptions measures a layer of a 2-billion-parameter model on all
// threads, at one token, a few and a tile: within a minute on most machines.
func DefaultOptions() Options {
	return Options{
		Packings: matrix.Packings(),
		Shapes:   [][2]int{{4096, 4096}},
		Tokens:   []int{1, 8, 32},
		Threads:  []int{cpu.Cores()},
		Budget:   200 * time.Millisecond,
	}
}

// FullOptions measures two layers at more numbers of tokens, on one thread
// and on all: some minutes.
func FullOptions() Options {
	o := DefaultOptions()
	o.Shapes = append(o.Shapes, [2]int{2560, 6912})
	o.Tokens = []int{1, 4, 8, 16, 32, 128}
	if o.Threads[0] > 1 {
		o.Threads = []int{1, o.Threads[0]}
	}
	return o
}

// Rows counts the rows that Products yields.
func (o *Options) Rows() int {
	kernels := 0
	for _, p := range o.Packings {
		kernels += len(o.kernels(p))
	}
	return kernels * len(o.Shapes) * len(o.Tokens) * len(o.Threads)
}

// Row is the best of several products y[N][M] = x[N][K] · W[M][K]ᵀ by one
// kernel, quantising and arranging the activations included.
type Row struct {
	ISA     string  `json:"isa"`
	Kernel  string  `json:"kernel"`
	Packing string  `json:"packing"`
	M       int     `json:"m"`
	K       int     `json:"k"`
	N       int     `json:"n"`
	Threads int     `json:"threads"`
	GMACs   float64 `json:"gmacs"`      // 10^9 multiply-accumulates a second
	Peak    float64 `json:"peak_gmacs"` // what the machine allows: its multiply units, or for N = 1 reading the same bytes
	Ratio   float64 `json:"ratio"`      // GMACs / Peak; a lookup kernel may exceed 1. Zero where no peak is known
}

// Products measures every ternary kernel this machine has, and for the other
// packings the kernels of cpu.Active. On one thread the time that it computes counts, and
// the peak of the multiply units is measured in turns with products. Matrices of N = 1 are read from memory, not
// from a cache: there are enough copies, read in rotation, to exceed it. Products yields an error,
// and ends, for a shape that cannot be packed.
func Products(machine bench.Machine, o Options) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for _, threads := range o.Threads {
			pool := pool.New(threads)
			ok := products(pool, machine, o, yield)
			pool.Close()
			if !ok {
				return
			}
		}
	}
}

func products(pool *pool.Pool, machine bench.Machine, o Options, yield func(Row, error) bool) bool {
	for _, p := range o.Packings {
		for _, s := range o.Shapes {
			least := 1
			if slices.Contains(o.Tokens, 1) {
				least = bench.Uncached
			}
			stack, err := bench.Stack(s[0], s[1], p, least)
			if err != nil {
				yield(Row{}, err)
				return false
			}
			for _, name := range o.kernels(p) {
				cpu := kernels.NewCPU(pool)
				if p.Ternary() {
					if err := cpu.UseTernary(name); err != nil {
						yield(Row{}, err)
						return false
					}
				}
				for _, n := range o.Tokens {
					row, err := product(machine, cpu, name, stack, n, o.Budget)
					if err == nil {
						if n > 1 && row.Peak == 0 {
							row.Peak = machine.Bound(stack[0], row.Threads)
						}
						if row.Peak > 0 {
							row.Ratio = row.GMACs / row.Peak
						}
					}
					if !yield(row, err) || err != nil {
						return false
					}
				}
			}
		}
	}
	return true
}

// Kernels lists the kernels of all packings.
func Kernels() []string {
	var names []string
	for _, p := range matrix.Packings() {
		names = append(names, benchedKernels(p)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// kernels lists the kernels of a packing to measure.
func (o *Options) kernels(p matrix.Packing) []string {
	return slices.DeleteFunc(benchedKernels(p), func(name string) bool {
		return len(o.Kernels) > 0 && !slices.Contains(o.Kernels, name)
	})
}

// benchedKernels names the kernels of a packing, "isa:method" or the ISA alone. What
// routine finds may go before the method.
func benchedKernels(p matrix.Packing) []string {
	switch {
	case p.Ternary():
		return ternary.Implementations()
	case cpu.Active() == cpu.Generic:
		return []string{cpu.Generic.String()}
	case p.Kind() == meter.Dense:
		return []string{cpu.Active().String() + ":fma"}
	}
	var names []string
	for _, method := range grouped.Methods(p) {
		names = append(names, cpu.Active().String()+":"+method)
	}
	return names
}

// routine returns the method that multiplies w with n tokens where method does with few:
// the products of whole tiles of tokens may be looked up in tables.
func routine(w *matrix.Matrix, method string, n int) string {
	if w.Packing.Kind() != meter.Grouped {
		return method
	}
	k, ok := grouped.NewKernel(w).(bands.TableKernel)
	switch {
	case !ok || k.TableTokens() == 0 || n < k.TableTokens():
		return method
	case n%k.TableTokens() == 0:
		return "lut"
	}
	return "lut+" + method
}

// product times a product by the named kernel, which cpu is held to.
func product(machine bench.Machine, cpu *kernels.CPU, name string, stack []*matrix.Matrix, n int, budget time.Duration) (Row, error) {
	w := stack[0]
	if n > 1 {
		stack = stack[:1]
	}
	isa, _, _ := strings.Cut(name, ":")
	method := methodOf(name)
	layers, err := load(cpu, method, stack)
	if err != nil {
		return Row{}, err
	}
	x, y := make([]float32, n*w.Cols), make([]float32, n*w.Rows)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	var acts kernels.Acts
	multiply := func(i int) {
		acts.Set(x, n, w.Cols)
		layers[i].Mul(y, &acts)
	}
	macs := float64(n) * float64(w.Rows) * float64(w.Cols) * float64(len(layers))
	threads := cpu.Pool().Threads()
	row := Row{ISA: isa, Kernel: routine(w, method, n), Packing: w.Packing.String(), M: w.Rows, K: w.Cols, N: n, Threads: threads}
	switch {
	case n == 1:
		products, reading := bench.BesideReading(budget, cpu.Pool(), stack, multiply)
		row.GMACs, row.Peak = macs/products.Seconds()/1e9, macs/reading.Seconds()/1e9
	case threads == 1 && machine.Peak > 0:
		row.GMACs, row.Peak = bench.BesidePeak(budget, w.Packing.Kind(), macs, multiply)
	default:
		row.GMACs = macs / bench.BestOfEach(threads, budget, len(layers), multiply).Seconds() / 1e9
	}
	return row, nil
}

// methodOf returns the method of "isa:method", or the ISA alone.
func methodOf(name string) string { return name[strings.Index(name, ":")+1:] }

// load prepares the matrices, grouped ones for a method.
func load(cpu *kernels.CPU, method string, stack []*matrix.Matrix) ([]kernels.Linear, error) {
	if stack[0].Packing.Kind() == meter.Grouped {
		defer grouped.Force(choice.Always(method))()
	}
	layers := make([]kernels.Linear, len(stack))
	for i, w := range stack {
		var err error
		if layers[i], err = cpu.Load(w); err != nil {
			return nil, err
		}
	}
	return layers, nil
}
