package batcher

import (
	"testing"

	"github.com/lutra-lm/lutra/batcher/schedule"
)

// The first steps of an engine meet cold caches, and steps of one row are seldom measured again while the others guess.
func TestFurtherRowsAreNeverTakenForQuickerThanNone(t *testing.T) {
	cost := &schedule.CostModel{}
	cost.Observe(1, 0.1)
	for range 20 {
		cost.Observe(2, 0.02)
		cost.Observe(4, 0.02)
	}
	taken := func(rate float64) int {
		options := draftOptions{{rate: rate, most: 3}}
		options.take(nil, 1, 3, cost, worthDrafting, func() float64 { return 0.001 })
		return options[0].taken
	}
	if n := taken(0.9); n > 0 {
		t.Errorf("%d guesses pay beside the only step of a row", n)
	}
	for range 2 {
		cost.Observe(1, 0.1)
	}
	if wrong, right := taken(0.02), taken(0.7); wrong > 0 || right < 2 {
		t.Errorf("%d guesses pay that are nearly always wrong, and %d that are mostly right", wrong, right)
	}
}
