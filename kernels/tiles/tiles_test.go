package tiles

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// random is tiles of fp16, subnormal and large ones among them.
func random(r *rand.Rand, tiles int) []uint16 {
	h := make([]uint16, tiles*Size)
	for i := range h {
		for h[i] = uint16(r.Uint32()); h[i]&0x7c00 == 0x7c00; {
			h[i] = uint16(r.Uint32())
		}
	}
	return h
}

func TestEveryInstructionSetMultipliesToTheSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for tiles := 1; tiles <= 5; tiles++ {
		act, wgt := random(r, tiles), random(r, tiles)
		var want Sums
		for i := range want {
			want[i] = float32(r.NormFloat64())
		}
		before := want
		for y := range Side {
			for x := range Side {
				for k := range tiles * Side {
					at := k / Side * Size
					k := k % Side
					want[y*Side+x] += vector.FromF16(act[at+y/2*64+2*k+y%2]) * vector.FromF16(wgt[at+k/2*64+2*x+k%2])
				}
			}
		}
		for _, isa := range cpu.Supported() {
			restore := cpu.Override(isa)
			a, w, got := make([]float32, len(act)), make([]float32, len(wgt)), before
			Widen(a, act)
			WidenRows(w, wgt)
			got.Multiply(a, w)
			restore()
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("%v, %d tiles: sum %d is %v, want %v", isa, tiles, i, got[i], want[i])
				}
			}
		}
	}
}

func BenchmarkMultiply(b *testing.B) {
	const tiles = 16
	r := rand.New(rand.NewPCG(2, 3))
	for _, isa := range cpu.Supported() {
		b.Run(isa.String(), func(b *testing.B) {
			defer cpu.Override(isa)()
			a, w := make([]float32, tiles*Size), make([]float32, tiles*Size)
			Widen(a, random(r, tiles))
			WidenRows(w, random(r, tiles))
			var s Sums
			for b.Loop() {
				s.Multiply(a, w)
			}
			b.ReportMetric(float64(tiles*Side*Size)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
		})
	}
}
