//go:build arm64 && !purego

package grouped_test

import (
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/pool"
)

func TestPanelsHaveTheBitsOfTilesWithoutThem(t *testing.T) {
	if !cpu.HasI8MM {
		t.Skip("this machine has no SMMLA")
	}
	pool := pool.New(1)
	defer pool.Close()
	r := rand.New(rand.NewPCG(8, 8))
	const rows, cols = 80, 512
	for _, p := range matrices.Grouped {
		m := matrices.Random(t, r, p, rows, cols)
		pairs := load(t, pool, m)
		cpu.HasI8MM = false
		others := load(t, pool, m)
		cpu.HasI8MM = true
		for n := range 12 {
			n++
			var in input
			in.Set(kerneltest.RandomVector(r, n*cols), n, cols)
			got, want := make([]float32, n*rows), make([]float32, n*rows)
			pairs.Mul(got, &in.Rows, &in.task)
			others.Mul(want, &in.Rows, &in.task)
			if !kerneltest.SameBits(got, want) {
				t.Errorf("%v, %d tokens: SMMLA and SDOT differ", p, n)
			}
		}
	}
}
