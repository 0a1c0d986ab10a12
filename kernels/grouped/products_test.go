package grouped_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

// input is rows with the product that is under way.
type input struct {
	acts.Rows
	task bands.Task
}

func load(tb testing.TB, p *pool.Pool, m *matrix.Matrix) *bands.Linear {
	tb.Helper()
	l, err := bands.NewRunner(p, new(stream.Order)).Load(m, grouped.NewKernel(m))
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func TestGroupedProductsHaveTheSameBitsOnEveryVectorISA(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	kerneltest.OnEachISA(t, func(t *testing.T) {
		best := cpu.Active()
		if best != cpu.AVX512 && best != cpu.AVXVNNI {
			t.Skip("compares AVX-512 and AVX-VNNI with AVX2")
		}
		r := rand.New(rand.NewPCG(8, 8))
		const rows, cols = 80, 512
		for _, p := range matrices.Grouped {
			m := matrices.Random(t, r, p, rows, cols)
			wide := load(t, pool, m)
			restore := cpu.Override(cpu.AVX2)
			narrow := load(t, pool, m)
			restore()
			for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 11} {
				var in input
				in.Set(kerneltest.RandomVector(r, n*cols), n, cols)
				got, want := make([]float32, n*rows), make([]float32, n*rows)
				wide.Mul(got, &in.Rows, &in.task)
				narrow.Mul(want, &in.Rows, &in.task)
				if !kerneltest.SameBits(got, want) {
					t.Errorf("%v, %d tokens: %v and AVX2 differ", p, n, best)
				}
			}
		}
	})
}

func TestIntegerSumsAreExactAtTheEndsOfTheirRange(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	kerneltest.OnEachISA(t, func(t *testing.T) {
		const rows, cols, n = 64, 512, 35
		signs := []func(k int) float32{
			func(int) float32 { return 1 }, func(int) float32 { return -1 },
			func(k int) float32 { return float32(1 - 2*(k%2)) }, func(k int) float32 { return float32(1 - 2*(k/2%2)) },
			func(k int) float32 { return float32(1 - 2*(k/16%2)) },
			func(k int) float32 { return []float32{1, 1.0 / 127, 0}[(k%16+1)/8] }, // Σ|q| of a half is mostHalf
		}
		for _, p := range matrices.Grouped {
			for _, code := range []byte{0x00, 0xff, 0x80, 0x7f, 0x0f, 0xf0} {
				m := matrices.Extreme(t, p, rows, cols, code)
				l := load(t, pool, m)
				for s, sign := range signs {
					x := make([]float32, n*cols)
					for i := range x {
						x[i] = 127 * sign(i%cols)
					}
					for _, tokens := range []int{1, 2, 4, 9, n} {
						if tokens == n && cpu.Active() == cpu.Generic && !sweep.All() {
							continue // slow by design
						}
						var in input
						in.Set(x[:tokens*cols], tokens, cols)
						y := make([]float32, tokens*rows)
						l.Mul(y, &in.Rows, &in.task)
						w := make([]float32, cols)
						grouped.Row(w, m, rows-1)
						var want, l1 float64
						for k, v := range w {
							want += float64(v) * float64(x[k])
							l1 += math.Abs(float64(v) * float64(x[k]))
						}
						for i, v := range y {
							if !kerneltest.Near(v, want, 1e-6*l1) {
								t.Fatalf("%v codes %#x, signs %d, %d tokens: y[%d] = %v, want %v", p, code, s, tokens, i, v, want)
							}
						}
					}
				}
			}
		}
	})
}
