package schedule

import (
	"math"
	"testing"
)

func TestThePaceLearnsAMachineFromTheStepsThereAre(t *testing.T) {
	for _, c := range []struct {
		name string
		time func(n int) float64
	}{
		{"weights dominate", linear(30, 0.3)},
		{"tokens dominate", linear(1, 0.75)},
		{"rows of a tile are dearer", func(n int) float64 { return 1e-3 * math.Sqrt(float64(n)) }},
	} {
		var p CostModel
		p.Observe(512, c.time(512)) // a prompt before there are streams
		for i := range 300 {
			n := []int{3, 3, 3, 11, 64, 3, 200}[i%7]
			p.Observe(n, c.time(n))
		}
		for _, n := range []int{3, 11, 64, 200} {
			if got, want := p.Time(n), c.time(n); math.Abs(got-want) > 0.1*want {
				t.Errorf("%s: %d tokens expected to take %.2g s, want %.2g", c.name, n, got, want)
			}
		}
	}
}

func TestThePaceFollowsAMachineThatSlowsDownAtSizesNotSeenToo(t *testing.T) {
	var p CostModel
	for range 50 {
		p.Observe(2, 0.010)
		p.Observe(32, 0.040)
	}
	for range 100 {
		p.Observe(2, 0.030)
	}
	if got := p.Time(2); math.Abs(got-0.030) > 0.003 {
		t.Errorf("2 tokens: %v s, want 0.030", got)
	}
	if got := p.Time(32); got < 0.045 || got > 0.160 {
		t.Errorf("32 tokens: %v s, want well above 0.040", got)
	}
}

func TestOneHiccupMovesThePaceLittle(t *testing.T) {
	var p CostModel
	for range 100 {
		p.Observe(8, 0.010)
	}
	p.Observe(8, 10)
	if got := p.Time(8); got > 0.014 {
		t.Errorf("%v s after one step of 10 s, want about 0.010", got)
	}
}

func TestAnIgnorantPaceExpectsNothingAndThenProportion(t *testing.T) {
	var p CostModel
	p.Observe(0, 1)
	if got := p.Time(7); got != 0 {
		t.Errorf("%v s before any step, want 0", got)
	}
	p.Observe(8, 0.008)
	if half, twice := p.Time(4), p.Time(16); math.Abs(half-0.004) > 1e-9 || math.Abs(twice-0.016) > 1e-9 {
		t.Errorf("4 tokens %v s and 16 tokens %v s, want 0.004 and 0.016", half, twice)
	}
}
