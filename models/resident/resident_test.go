package resident

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// want takes a turn for pieces and returns those that had to be placed.
func want(t *testing.T, s *Set, pieces ...int32) (placed []int32) {
	t.Helper()
	n := s.Begin(pieces)
	for _, p := range pieces[:n] {
		if _, ok := s.Slot(p); !ok {
			s.Place(p)
			placed = append(placed, p)
		}
	}
	for _, p := range pieces[:n] {
		if _, ok := s.Slot(p); !ok {
			t.Fatalf("piece %d went out in the turn that wants it", p)
		}
	}
	return placed
}

func TestWhatFewTurnsWantGoesOutFirst(t *testing.T) {
	s := New(10, 3)
	want(t, s, 1, 2)
	want(t, s, 1)
	want(t, s, 3)
	if got := want(t, s, 4); !slices.Equal(got, []int32{4}) {
		t.Fatalf("%v was placed", got)
	}
	for _, c := range []struct {
		piece int32
		held  bool
	}{{1, true}, {2, true}, {3, false}, {4, true}} { // 3 went: wanted as often as 2, and after it
		if _, ok := s.Slot(c.piece); ok != c.held {
			t.Errorf("piece %d in memory: %t", c.piece, ok)
		}
	}
}

func TestOfMorePiecesThanSlotsThoseInMemoryComeFirst(t *testing.T) {
	s := New(8, 2)
	want(t, s, 5, 6)
	pieces := []int32{1, 6, 2, 5}
	if n := s.Begin(pieces); n != 2 || !slices.Equal(pieces, []int32{6, 5, 1, 2}) {
		t.Errorf("the turn is for %d of %v", n, pieces)
	}
}

// With fewer slots than a round of all layers wants, the order of recency would
// find nothing in memory, ever.
func TestPiecesWantedInACircleAreFoundInMemory(t *testing.T) {
	s := New(10, 6)
	placed := 0
	for range 100 {
		for p := range int32(10) {
			placed += len(want(t, s, p))
		}
	}
	if placed > 600 {
		t.Errorf("%d of 1000 wishes were not in memory", placed)
	}
}

func TestEveryPieceHasItsOwnSlotWhateverIsWanted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := New(40, 7)
	for range 3 * halved {
		pieces := make([]int32, 0, 12)
		for range 1 + r.IntN(12) {
			if p := int32(r.IntN(40)); !slices.Contains(pieces, p) {
				pieces = append(pieces, p)
			}
		}
		want(t, s, pieces...)
		for slot, p := range s.piece {
			if p != none && s.slot[p] != int32(slot) {
				t.Fatalf("slot %d holds piece %d, which is at %d", slot, p, s.slot[p])
			}
		}
	}
}
