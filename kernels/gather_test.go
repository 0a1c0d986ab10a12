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

// gatheringWorkers multiply rows that each of them gathers, by itself.
type gatheringWorkers struct {
	l    Linear
	from *Acts
	own  []Acts
	rows [][]int32
	y    [][]float32
}

func (g *gatheringWorkers) Do(worker, i int) {
	a := &g.own[i]
	a.Pin(worker)
	a.Gather(&g.from.Rows, g.rows[i])
	g.l.Mul(g.y[i], a)
}

func TestGatheredRowsGetTheBitsThatTheyHaveAmongTheOthers(t *testing.T) {
	p := pool.New(3)
	defer p.Close()
	kerneltest.OnEachISA(t, func(t *testing.T) {
		for i, packing := range append([]matrix.Packing{matrix.I1, matrix.I2}, matrices.Banded...) {
			if cpu.Active() == cpu.Generic && sweep.Quick() && i%3 != 0 {
				continue // slow by design, and one loop for all
			}
			r := rand.New(rand.NewPCG(5, uint64(packing)))
			const rows, cols, n = 133, 512, 70
			var m *matrix.Matrix
			if packing.Ternary() {
				var err error
				if m, err = ternary.Pack(rows, cols, kerneltest.RandomTrits(r, rows*cols), []float32{0.5}, packing); err != nil {
					t.Fatal(err)
				}
			} else {
				m = matrices.Random(t, r, packing, rows, cols)
			}
			g := &gatheringWorkers{l: mustLinear(t, p, m), from: new(Acts)}
			x, want := kerneltest.RandomVector(r, n*cols), make([]float32, n*rows)
			g.from.Set(x, n, cols)
			g.l.Mul(want, g.from)
			check := func(how string) {
				for i, list := range g.rows {
					for j, row := range list {
						if !kerneltest.SameBits(g.y[i][j*rows:(j+1)*rows], want[int(row)*rows:][:rows]) {
							t.Fatalf("%v: row %d %s, number %d of %d: its product differs", packing, row, how, j, len(list))
						}
					}
				}
			}
			for _, count := range []int{1, 2, 5, 17, 33, 64} {
				list := make([]int32, count)
				for i := range list {
					list[i] = int32(r.IntN(n))
				}
				g.rows, g.own = append(g.rows, list), append(g.own, Acts{})
				g.y = append(g.y, make([]float32, count*rows))
			}
			var whole Acts
			for i, list := range g.rows { // a form is made when the first product wants it
				g.from.Set(x, n, cols)
				whole.Gather(&g.from.Rows, list)
				g.l.Mul(g.y[i], &whole)
			}
			check("gathered by the pool")
			for i := range g.y {
				clear(g.y[i])
			}
			g.from.Set(x, n, cols)
			g.from.Quantise(p, packing)
			p.Run(g, len(g.rows))
			check("gathered by a worker")
			whole.Set(x, 3, cols)
			g.l.Mul(g.y[5], &whole)
			if !kerneltest.SameBits(g.y[5][:3*rows], want[:3*rows]) {
				t.Fatalf("%v: rows set after a gathering have other products", packing)
			}
		}
	})
}
