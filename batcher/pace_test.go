package batcher

import (
	"math"
	"testing"
)

func TestBackgroundWorkWaitsForTheCreditOfItsSteps(t *testing.T) {
	var p pace
	if got := p.background(8); got != 0 {
		t.Errorf("without any step, the pace is %v", got)
	}
	for _, n := range []int{1, 2, 4, 8, 16, 32} {
		p.cost.Observe(n, 0.010+0.001*float64(n))
	}
	for _, c := range []struct {
		what     string
		load     workload
		slowdown float64
		want     float64
	}{
		{"alone", workload{}, 1.75, 0.018},
		{"beside others of its kind", workload{background: 8}, 1.75, 0.026},
		{"beside streams that have credit for all", workload{streams: 8}, 1.75, 0.026},
		{"beside streams that must save for it", workload{streams: 8}, 1.1, 0.026 + 0.018*(0.008/0.0018-1)},
		{"where nothing bounds it", workload{streams: 8}, 0, 0.026},
	} {
		p.load, p.slowdown = c.load, c.slowdown
		if got := p.background(8); math.Abs(got-c.want) > 1e-3*c.want {
			t.Errorf("%s: %v s a token, want %v", c.what, got, c.want)
		}
	}
}
