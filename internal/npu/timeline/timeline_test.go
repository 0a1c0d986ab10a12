package timeline

import (
	"math"
	"testing"
)

func TestTheSimulationOverlapsAsTheFormulaSays(t *testing.T) {
	for _, c := range []Costs{{1, 1, 1}, {3, 1, 2}, {1, 5, 2}, {1, 2, 7}, {0, 2, 1}} {
		for n := 1; n < 8; n++ {
			for _, overlap := range []bool{false, true} {
				spans, got := Simulate(n, c, overlap)
				if want := Total(n, c, overlap); math.Abs(got-want) > 1e-9 || len(spans) != 3*n {
					t.Errorf("%d tiles of %v, overlap %t: %v and %d spans, want %v and %d", n, c, overlap, got, len(spans), want, 3*n)
				}
			}
		}
	}
}

func TestAUnitDoesOneJobAtATime(t *testing.T) {
	spans, _ := Simulate(6, Costs{2, 3, 1}, true)
	var free [stages]float64
	for _, s := range spans {
		if s.Begin < free[s.Stage] {
			t.Errorf("%v of tile %d begins at %v, before %v", s.Stage, s.Tile, s.Begin, free[s.Stage])
		}
		free[s.Stage] = s.End
	}
}
