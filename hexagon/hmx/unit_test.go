package hmx

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// naive is the definition of the product, element by element.
func naive(out []uint16, runs []Run, rows, cols int, scale float32) {
	for r := range rows * layout.Tile {
		for c := range cols * layout.Tile {
			var acc float32
			for _, run := range runs {
				for k := range run.K * layout.Tile {
					a := run.Act[(r/layout.Tile*run.K+k/layout.Tile)*tile+layout.TileIndex(r%layout.Tile, k%layout.Tile)]
					w := run.Wgt[(c/layout.Tile*run.K+k/layout.Tile)*tile+layout.TileIndex(k%layout.Tile, c%layout.Tile)]
					acc += layout.F32(a) * layout.F32(w)
				}
			}
			out[(r/layout.Tile*cols+c/layout.Tile)*tile+layout.TileIndex(r%layout.Tile, c%layout.Tile)] = layout.F16(acc * scale)
		}
	}
}

// random is tiles of numbers as layers have them, some of which are subnormal or large.
func random(r *rand.Rand, n int) []uint16 {
	h := make([]uint16, n*tile)
	for i := range h {
		f := r.NormFloat64()
		switch r.IntN(50) {
		case 0:
			f *= 0x1p-16
		case 1:
			f *= 1000
		}
		h[i] = layout.F16(float32(f))
	}
	return h
}

func TestTheUnitComputesItsDefinitionOnAnyMachine(t *testing.T) {
	threads := pool.New(2)
	defer threads.Close()
	r := rand.New(rand.NewPCG(1, 4))
	for _, p := range []*pool.Pool{nil, threads} {
		u := New(p)
		for _, shape := range [][4]int{{1, 1, 1, 0}, {4, 1, 17, 0}, {1, 3, 2, 1}, {2, 2, 1, 3}} {
			rows, cols := shape[0], shape[1]
			var runs []Run
			for _, k := range shape[2:] {
				if k > 0 {
					runs = append(runs, Run{random(r, rows*k), random(r, cols*k), k})
				}
			}
			if rows == 2 || rows == 4 { // as of a batch of 16
				for _, run := range runs {
					for i := range run.Wgt {
						if i%64 >= 32 {
							run.Wgt[i] &= 0x8000
						}
					}
				}
			}
			want, got := make([]uint16, rows*cols*tile), make([]uint16, rows*cols*tile)
			naive(want, runs, rows, cols, 0.7)
			for _, isa := range cpu.Supported() {
				restore := cpu.Override(isa)
				u.Mul(got, runs, rows, cols, 0.7)
				restore()
				if !slices.Equal(got, want) {
					t.Fatalf("%v, %v: the product differs", shape, isa)
				}
			}
		}
	}
}
