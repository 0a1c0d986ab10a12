package scaling

import (
	"math"
	"testing"
)

func TestMajorityIsTheBetaTail(t *testing.T) {
	for _, c := range []struct {
		a, b int
		want float64
	}{{0, 0, 0.5}, {1, 0, 0.75}, {4, 0, 31. / 32}, {2, 2, 0.5}, {3, 1, 13. / 16}} {
		if got := Majority(c.a, c.b); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Majority(%d, %d) = %v, want %v", c.a, c.b, got, c.want)
		}
		if got := Majority(c.a, c.b) + Majority(c.b, c.a); math.Abs(got-1) > 1e-12 {
			t.Errorf("Majority(%d, %d) and its opposite add up to %v", c.a, c.b, got)
		}
	}
}

func TestFurtherVotesGainWhatTheyAreExpectedTo(t *testing.T) {
	for _, c := range []struct{ a, b, m int }{{0, 0, 1}, {3, 1, 2}, {3, 1, 3}, {2, 2, 5}, {5, 1, 12}, {1, 3, 4}} {
		// by the book: all orders of m votes, each with the odds of the votes before it
		var walk func(a, b, left int) float64
		walk = func(a, b, left int) float64 {
			if left == 0 {
				return max(Majority(a, b), Majority(b, a))
			}
			p := float64(a+1) / float64(a+b+2)
			return p*walk(a+1, b, left-1) + (1-p)*walk(a, b+1, left-1)
		}
		want := walk(c.a, c.b, c.m) - Majority(c.a, c.b)
		if got := expectedGain(c.a, c.b, c.m); math.Abs(got-want) > 1e-12 {
			t.Errorf("expectedGain(%d, %d, %d) = %v, want %v", c.a, c.b, c.m, got, want)
		}
	}
	if got := expectedGain(4, 0, 3); got > 1e-15 {
		t.Errorf("three votes that cannot turn four gain %v", got)
	}
}
