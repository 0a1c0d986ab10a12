package expertcache

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// want has a step want experts and returns those that were not in memory.
func want(t *testing.T, c *LFU, experts ...int32) (assigned []int32) {
	t.Helper()
	n := c.BeginStep(experts)
	for _, p := range experts[:n] {
		if _, ok := c.Slot(p); !ok {
			c.Assign(p)
			assigned = append(assigned, p)
		}
	}
	for _, p := range experts[:n] {
		if _, ok := c.Slot(p); !ok {
			t.Fatalf("expert %d went out in the step that wants it", p)
		}
	}
	return assigned
}

func TestWhatFewStepsWantGoesOutFirst(t *testing.T) {
	c := New(10, 3)
	want(t, c, 1, 2)
	want(t, c, 1)
	want(t, c, 3)
	if got := want(t, c, 4); !slices.Equal(got, []int32{4}) {
		t.Fatalf("%v was assigned", got)
	}
	for _, w := range []struct {
		expert int32
		held   bool
	}{{1, true}, {2, true}, {3, false}, {4, true}} { // 3 went: wanted as often as 2, and after it
		if _, ok := c.Slot(w.expert); ok != w.held {
			t.Errorf("expert %d in memory: %t", w.expert, ok)
		}
	}
}

func TestOfMoreExpertsThanSlotsThoseInMemoryComeFirst(t *testing.T) {
	c := New(8, 2)
	want(t, c, 5, 6)
	experts := []int32{1, 6, 2, 5}
	if n := c.BeginStep(experts); n != 2 || !slices.Equal(experts, []int32{6, 5, 1, 2}) {
		t.Errorf("the step is for %d of %v", n, experts)
	}
}

// With fewer slots than a round of all layers wants, the order of recency would
// find nothing in memory, ever.
func TestExpertsWantedInACircleAreFoundInMemory(t *testing.T) {
	c := New(10, 6)
	assigned := 0
	for range 100 {
		for p := range int32(10) {
			assigned += len(want(t, c, p))
		}
	}
	if assigned > 600 {
		t.Errorf("%d of 1000 wishes were not in memory", assigned)
	}
}

func TestEveryExpertHasItsOwnSlotWhateverIsWanted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := New(40, 7)
	for range 3 * halved {
		experts := make([]int32, 0, 12)
		for range 1 + r.IntN(12) {
			if p := int32(r.IntN(40)); !slices.Contains(experts, p) {
				experts = append(experts, p)
			}
		}
		want(t, c, experts...)
		for slot, p := range c.expert {
			if p != none && c.slot[p] != int32(slot) {
				t.Fatalf("slot %d holds expert %d, which is at %d", slot, p, c.slot[p])
			}
		}
	}
}
