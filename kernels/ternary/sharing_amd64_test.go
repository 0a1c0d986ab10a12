//go:build amd64 && !purego

package ternary

import (
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

// interrupted is the lookup kernel, which calls before ahead of every addition.
func interrupted(before func(m *Task, s *scratch, first bool)) *kernel {
	k, shared := *lutKernel, *lutKernel.shared
	shared.add = func(m *Task, r *segmentRun, s *scratch, strips, tokens, blocks extent, first, last bool) {
		before(m, s, first)
		addLUT(m, r, s, strips, tokens, blocks, first, last)
	}
	k.shared = &shared
	return &k
}

// Whoever ends a part last, its results are the same, and one helps who can.
func TestPartsCanBeSharedInAnyOrder(t *testing.T) {
	if !cpu.Has(cpu.AVX2) {
		t.Skip("no such kernel here")
	}
	pool := pool.New(3)
	defer pool.Close()
	rng := rand.New(rand.NewPCG(23, 24))
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		const rows, n = 100, 16
		for _, cols := range []int{1, 200, 257, 400, 769, 2050} {
			c := newCase(t, p, rows, cols, n, kerneltest.RandomTrits(rng, rows*cols), kerneltest.RandomVector(rng, n*cols), []float32{1})
			for when := range 8 { // the owner's addition before which another worker helps until nothing is left
				adds, helps := 0, 0
				run := NewRunner(pool, new(stream.Order))
				run.only = interrupted(func(m *Task, s *scratch, _ bool) {
					if s != &run.scratch[0] {
						helps++
						return
					}
					if adds == when {
						m.sharing.help(2, 0)
					}
					adds++
				})
				l, err := run.Load(c.w)
				if err != nil {
					t.Fatal(err)
				}
				x, y := new(input), make([]float32, len(c.want))
				x.Set(c.x, n, cols)
				x.Pin(0)
				l.Mul(y, &x.Rows, &x.task) // arranges the activations
				clear(y)
				m := &x.task
				m.y = y
				m.sharing.begin(m, m.runs[0].parts)
				adds, helps = 0, 0
				m.sharing.Do(0, 0)
				for i, v := range c.want {
					if y[i] != v {
						t.Fatalf("%v, %d columns, helped before addition %d: value %d = %v, want %v", p, cols, when, i, y[i], v)
					}
				}
				if when == 0 && cols > lutFlush && m.runs[0].parts == 1 && helps == 0 {
					t.Errorf("%v, %d columns: nobody helped", p, cols)
				}
			}
		}
	}
}

func TestManyWorkersShareParts(t *testing.T) {
	if !cpu.Has(cpu.AVX2) {
		t.Skip("no such kernel here")
	}
	rng := rand.New(rand.NewPCG(25, 26))
	for _, threads := range []int{2, 5} {
		pool := pool.New(threads)
		run := NewRunner(pool, new(stream.Order))
		run.only = lutKernel
		var in input
		for _, s := range [][3]int{{640, 700, 16}, {330, 1100, 20}, {192, 2000, 33}} {
			rows, cols, n := s[0], s[1], s[2]
			c := newCase(t, matrix.I2, rows, cols, n, kerneltest.RandomTrits(rng, rows*cols), kerneltest.RandomVector(rng, n*cols), []float32{1})
			for range 10 {
				c.run(t, run, &in)
			}
		}
		pool.Close()
	}
}
