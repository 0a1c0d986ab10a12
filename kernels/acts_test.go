package kernels

import (
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

func mustLinear(tb testing.TB, p *pool.Pool, m *matrix.Matrix) Linear {
	tb.Helper()
	l, err := NewCPU(p).Load(m)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// pinnedRows multiplies a share of the rows in each part, on the worker that takes it.
type pinnedRows struct {
	l             Linear
	shares        []Acts
	x, y          []float32
	n, rows, cols int
}

func (p *pinnedRows) Do(worker, i int) {
	lo, hi := i*p.n/len(p.shares), (i+1)*p.n/len(p.shares)
	a := &p.shares[i]
	a.Pin(worker)
	for range 3 { // reuse must not matter
		a.Set(p.x[lo*p.cols:], hi-lo, p.cols)
		p.l.Mul(p.y[lo*p.rows:hi*p.rows], a)
	}
}

func TestPinnedRowsGetTheBitsThatTheWholePoolGives(t *testing.T) {
	sweep.Full(t)
	pool := pool.New(3)
	defer pool.Close()
	kerneltest.OnEachISA(t, func(t *testing.T) {
		for i, p := range append([]matrix.Packing{matrix.I1, matrix.I2}, matrices.Banded...) {
			if cpu.Active() == cpu.Generic && sweep.Quick() && i%3 != 0 {
				continue // slow by design, and one loop for all
			}
			r := rand.New(rand.NewPCG(2, uint64(p)))
			const rows, cols, n = 133, 512, 39
			var m *matrix.Matrix
			if p.Ternary() {
				var err error
				if m, err = ternary.Pack(rows, cols, kerneltest.RandomTrits(r, rows*cols), []float32{0.5}, p); err != nil {
					t.Fatal(err)
				}
			} else {
				m = matrices.Random(t, r, p, rows, cols)
			}
			task := &pinnedRows{l: mustLinear(t, pool, m), x: kerneltest.RandomVector(r, n*cols), y: make([]float32, n*rows), n: n, rows: rows, cols: cols}
			var whole Acts
			want := make([]float32, n*rows)
			whole.Set(task.x, n, cols)
			task.l.Mul(want, &whole)
			for _, shares := range []int{1, 2, 5} {
				task.shares = make([]Acts, shares)
				clear(task.y)
				pool.Run(task, shares)
				if !kerneltest.SameBits(task.y, want) {
					t.Fatalf("%v: products of %d shares of the rows differ from those of all", p, shares)
				}
			}
		}
	})
}
