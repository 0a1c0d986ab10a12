package timeline

import (
	"math"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/pipeline"
)

// executed is when the jobs of tiles end on a device that takes them in order, begins copies and products
// without waiting, and waits where an operand is under way (hexagon/dsp/dispatch/flow.c).
func executed(n int, c Costs) (total float64) {
	now, free, ends := 0.0, [stages]float64{}, make([][stages]float64, n)
	_ = pipeline.Order(n, true, func(j pipeline.Job) error {
		switch j.Stage {
		case pipeline.Store:
			now = max(now, ends[j.Tile][pipeline.Multiply])
		case pipeline.Unpack:
			now = max(now, ends[j.Tile][pipeline.Load]) + c[pipeline.Unpack]
		default:
			free[j.Stage] = max(now, free[j.Stage]) + c[j.Stage]
			ends[j.Tile][j.Stage] = free[j.Stage]
		}
		total = max(total, now, free[pipeline.Multiply])
		return nil
	})
	return total
}

func TestADeviceThatWaitsForOperandsAloneTakesTheSimulatedTime(t *testing.T) {
	for _, c := range []Costs{{1, 1, 1}, {3, 1, 2}, {1, 5, 2}, {1, 2, 7}, {0, 2, 1}, {2, 1, 2}} {
		for n := 1; n < 8; n++ {
			if _, want := Simulate(n, c, true); executed(n, c) != want {
				t.Errorf("%d tiles of %v: %v, simulated %v", n, c, executed(n, c), want)
			}
		}
	}
}

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
