package vector

import (
	"math"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/kerneltest"
)

func TestTheClampedUnitIsThatOfItsDefinition(t *testing.T) {
	var gate, up []float32
	for _, g := range []float32{-300, -20, -3, -0.5, 0, 0.5, 3, 6.9, 7, 7.1, 300, float32(math.Inf(1))} {
		for _, u := range []float32{-300, -7.1, -7, -1, 0, 2, 7, 7.5, 300} {
			gate, up = append(gate, g), append(up, u)
		}
	}
	kerneltest.OnEachISA(t, func(t *testing.T) {
		got := make([]float32, len(gate))
		ClampedGLU(got, slices.Clone(gate), slices.Clone(up))
		for i := range got {
			g, u := min(float64(gate[i]), 7), max(-7, min(float64(up[i]), 7))
			if want := g / (1 + math.Exp(-1.702*g)) * (u + 1); math.Abs(float64(got[i])-want) > 1e-5*(1+math.Abs(want)) {
				t.Errorf("of %v and %v it is %v, want %v", gate[i], up[i], got[i], want)
			}
		}
		nan := float32(math.NaN())
		for _, pair := range [][2]float32{{nan, 1}, {1, nan}} {
			one := make([]float32, 1)
			if ClampedGLU(one, pair[:1], pair[1:]); one[0] == one[0] {
				t.Errorf("of %v it is %v, want no number", pair, one[0])
			}
		}
	})
}
