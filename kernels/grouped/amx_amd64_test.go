//go:build amd64 && !purego

package grouped_test

import (
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/choice"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Runs of AMX differ by their groups, bands and tokens. Columns are of one group up to several blocks, rows of a part
// of a band up to an odd number of bands. Tokens are fewer than a tile has, up to more than stay in L2.
func TestTilesOfAMXGiveTheBitsOfTheOtherKernelsAtAllSizes(t *testing.T) {
	if !cpu.HasAMX {
		t.Skip("no AMX here, or the system does not grant it: " + cpu.NoAMX)
	}
	pool := pool.New(2)
	defer pool.Close()
	r := rand.New(rand.NewPCG(13, 13))
	for _, p := range []matrix.Packing{matrix.Q4, matrix.Q8, matrix.FP4, matrix.Q41, matrix.Q4M, matrix.Q6} {
		for _, shape := range [][2]int{{16, 32}, {16, 64}, {7, 96}, {33, 160}, {48, 544}, {80, 1088}, {35, 2048 + 64}, {64, 4096 + 96}} {
			cols := shape[1]
			if unit := grouped.UnitCols(p); cols%unit != 0 {
				cols += unit - cols%unit
			}
			rows := shape[0]
			m := matrices.Random(t, r, p, rows, cols)
			restore := grouped.Force(choice.Always(grouped.AMX))
			tiles := load(t, pool, m)
			restore()
			restore = grouped.Force(choice.Always(grouped.MAD))
			others := load(t, pool, m)
			restore()
			for _, n := range []int{4, 5, 6, 7, 8, 12, 13, 15, 16, 17, 20, 31, 33, 49, 64, 65, 127, 131} {
				var in input
				in.Set(kerneltest.RandomVector(r, n*cols), n, cols)
				got, want := make([]float32, n*rows), make([]float32, n*rows)
				tiles.Mul(got, &in.Rows, &in.task)
				others.Mul(want, &in.Rows, &in.task)
				if !kerneltest.SameBits(got, want) {
					t.Fatalf("%v, %dx%d, %d tokens: AMX differs", p, rows, cols, n)
				}
			}
		}
	}
}
