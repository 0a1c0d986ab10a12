package vector

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/kerneltest"
)

func TestTheHadamardTransformIsTheMatrixOfThatName(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, block := range []int{1, 2, 4, 8, 16, 64, 1024} {
			x := kerneltest.RandomVector(r, 3*block)
			got := slices.Clone(x)
			Hadamard(got, block)
			for i := range got {
				want := 0.0
				for j := range block {
					sign := 1 - 2*float64(bits.OnesCount(uint(i%block&j))%2)
					want += sign * float64(x[i/block*block+j])
				}
				if want /= math.Sqrt(float64(block)); !kerneltest.Near(got[i], want, 3e-6) {
					t.Fatalf("block of %d, element %d: %v, want %v", block, i, got[i], want)
				}
			}
			Hadamard(got, block)
			for i := range got {
				if !kerneltest.Near(got[i], float64(x[i]), 3e-6) {
					t.Fatalf("block of %d, twice, element %d: %v, want %v", block, i, got[i], x[i])
				}
			}
		}
	})
}

func TestL2NormMakesVectorsOfOneLength(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		x := []float32{3, 0, 0, 4, 0, 0, 0, 0, 0, 12}
		L2Norm(x, 26, 1e-6)
		if x[0] != 6 || x[3] != 8 || x[9] != 24 {
			t.Errorf("got %v", x)
		}
		zero := make([]float32, 9)
		if L2Norm(zero, 1, 1e-6); slices.Max(zero) != 0 {
			t.Errorf("a vector of zeros became %v", zero)
		}
	})
}
