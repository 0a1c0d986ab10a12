package schedule

import (
	"math"
	"testing"
)

func TestTheCostModelLearnsAMachineFromTheStepsThereAre(t *testing.T) {
	for _, c := range []struct {
		name string
		time func(n int) float64
	}{
		{"weights dominate", linear(30, 0.3)},
		{"tokens dominate", linear(1, 0.75)},
		{"the first tokens cost most", func(n int) float64 { return 1e-3 * math.Sqrt(float64(n)) }},
	} {
		var m CostModel
		m.Observe(512, c.time(512)) // a prompt before there are streams
		for i := range 300 {
			n := []int{3, 3, 3, 11, 64, 3, 200}[i%7]
			m.Observe(n, c.time(n))
		}
		for _, n := range []int{3, 11, 64, 200} {
			if got, want := m.Time(n), c.time(n); math.Abs(got-want) > 0.1*want {
				t.Errorf("%s: %d tokens expected to take %.2g s, want %.2g", c.name, n, got, want)
			}
		}
	}
}

func TestTheCostModelFollowsASlowerMachineAtSizesNotSeenToo(t *testing.T) {
	var m CostModel
	for range 50 {
		m.Observe(2, 0.010)
		m.Observe(32, 0.040)
	}
	for range 100 {
		m.Observe(2, 0.030)
	}
	if got := m.Time(2); math.Abs(got-0.030) > 0.003 {
		t.Errorf("2 tokens: %v s, want 0.030", got)
	}
	if got := m.Time(32); got < 0.045 || got > 0.160 {
		t.Errorf("32 tokens: %v s, want well above 0.040", got)
	}
}

func TestOneSlowStepMovesTheCostModelLittle(t *testing.T) {
	var m CostModel
	for range 100 {
		m.Observe(8, 0.010)
	}
	m.Observe(8, 10)
	if got := m.Time(8); got > 0.014 {
		t.Errorf("%v s after one step of 10 s, want about 0.010", got)
	}
}

func TestANewCostModelExpectsNothingAndThenProportion(t *testing.T) {
	var m CostModel
	m.Observe(0, 1)
	if got := m.Time(7); got != 0 {
		t.Errorf("%v s before any step, want 0", got)
	}
	m.Observe(8, 0.008)
	if half, twice := m.Time(4), m.Time(16); math.Abs(half-0.004) > 1e-9 || math.Abs(twice-0.016) > 1e-9 {
		t.Errorf("4 tokens %v s and 16 tokens %v s, want 0.004 and 0.016", half, twice)
	}
}

func TestColdFirstStepsAreForgottenAtOnce(t *testing.T) {
	var m CostModel
	m.Observe(8, 0.400)
	if m.Tried(8) {
		t.Error("one step makes a size known")
	}
	for range tried {
		m.Observe(8, 0.040)
	}
	if got := m.Time(8); math.Abs(got-0.040) > 1e-9 || !m.Tried(8) || m.Tried(16) {
		t.Errorf("%v s after steps of 0.4 and 0.04 s, want 0.04; known: %v, and twice as many tokens: %v", got, m.Tried(8), m.Tried(16))
	}
}

func TestASizeThatWasNotSeenForLongIsTriedAgain(t *testing.T) {
	var m CostModel
	for range 5 {
		m.Observe(8, 0.040)
		m.Observe(16, 0.100)
	}
	for i := range stale {
		if got := m.Optimistic(16); math.Abs(got-m.Time(16)) > 1e-9 {
			t.Fatalf("after %d other steps %v s are expected of 16 tokens, want %v", i, got, m.Time(16))
		}
		m.Observe(8, 0.040)
	}
	if got := m.Optimistic(16); got > 0.041 {
		t.Errorf("after %d other steps %v s are expected of 16 tokens, want those of 8", stale, got)
	}
}
