//go:build amd64 && !purego

package grouped

import (
	"slices"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// What is measured is given here, never taken from a clock.
func TestAnotherMethodMustBeFasterWithManyTokensAndNotSlowerWithFew(t *testing.T) {
	for _, c := range []struct {
		usual, other [2]time.Duration
		want         bool
	}{
		{[2]time.Duration{10, 100}, [2]time.Duration{10, 80}, true},
		{[2]time.Duration{10, 100}, [2]time.Duration{10, 84}, false}, // too close to tell
		{[2]time.Duration{10, 100}, [2]time.Duration{11, 50}, false},
		{[2]time.Duration{10, 100}, [2]time.Duration{5, 100}, false},
	} {
		if got := replaces(c.usual, c.other); got != c.want {
			t.Errorf("usual %v, other %v: %v, want %v", c.usual, c.other, got, c.want)
		}
	}
}

func TestEveryPackingHasAChoiceAmongItsMethods(t *testing.T) {
	for _, p := range matrix.Packings() {
		if method, why := Choice(p); !slices.Contains(Methods(p), method) || why == "" {
			t.Errorf("%v: %q, because %q, of %v", p, method, why, Methods(p))
		}
	}
	defer cpu.Override(cpu.AVX2)()
	for _, p := range matrix.Packings() {
		if method, _ := Choice(p); method != MAD {
			t.Errorf("%v: AVX2 has %q", p, method)
		}
	}
}

func TestWithoutGFNIThereIsNothingToChoose(t *testing.T) {
	defer cpu.Override(cpu.AVX512)()
	defer func(before bool) { cpu.HasGFNI = before }(cpu.HasGFNI)
	cpu.HasGFNI = false
	if got := Methods(matrix.Q4); !slices.Equal(got, []string{MAD}) {
		t.Errorf("methods %v, want %q alone", got, MAD)
	}
	if tiles := tilesFor(cpu.AVX512, &matrix.Matrix{Packing: matrix.Q4}); tiles.gfni != nil || tiles.pair == nil {
		t.Error("tiles of GFNI without it")
	}
}

func TestMeasuringGivesAMethod(t *testing.T) {
	if len(Methods(matrix.Q4)) < 2 {
		t.Skip("nothing to choose")
	}
	for _, p := range []matrix.Packing{matrix.Q4, matrix.Q4M, matrix.Q6, matrix.Q1G128} {
		if method, why := measureMethods(p); !slices.Contains(Methods(p), method) || why == "" {
			t.Errorf("%v: %q, because %q", p, method, why)
		}
	}
}
