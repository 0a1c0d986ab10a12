package tts

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// repeated tells whether tokens end with a pattern that comes so often, by definition.
func repeated(r Repetition, tokens []int32) bool {
	for length := max(r.MinPattern, 1); length <= r.MaxPattern; length++ {
		if whole := length * r.MinCount; whole <= len(tokens) {
			tail := tokens[len(tokens)-whole:]
			if slices.Equal(tail[length:], tail[:whole-length]) {
				return true
			}
		}
	}
	return false
}

func TestAPatternIsFoundWhenItComesForTheLastTime(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 2000 {
		r := Repetition{MinPattern: draw.IntN(4), MinCount: 2 + draw.IntN(4)}
		r.MaxPattern = max(r.MinPattern, 1) + draw.IntN(6)
		repeats := newRepeats(r)
		var tokens []int32
		pattern := 1 + draw.IntN(8)
		for i := range 60 {
			id := draw.Int32N(3)
			if i >= pattern && draw.IntN(12) > 0 {
				id = tokens[i-pattern]
			}
			tokens = append(tokens, id)
			if i == 30 {
				repeats = repeats.clone()
			}
			got, want := repeats.push(id), repeated(r, tokens)
			if got != want {
				t.Fatalf("%+v in %v: %v, want %v", r, tokens, got, want)
			}
			if got {
				found++
			}
		}
	}
	if found < 1000 {
		t.Errorf("%d patterns were found", found)
	}
	var none repeats
	for range 100 {
		if none.push(1) {
			t.Fatal("a pattern is found where none is looked for")
		}
	}
}
