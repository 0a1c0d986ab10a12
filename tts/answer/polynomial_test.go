package answer

import (
	"fmt"
	"testing"
)

func TestAProductThatCancelsIsAlwaysEitherTooLongOrNot(t *testing.T) {
	for n := 4; n < 24; n++ {
		var a, b polynomial
		for i := range n {
			x := atom(fmt.Sprintf("x%d", i))
			if a == nil {
				a, b = x, x
				continue
			}
			if a = a.plus(x); i%2 == 0 {
				b = b.plus(x)
			} else {
				b = b.plus(x.negated())
			}
		}
		first := a.times(b) == nil
		for range 30 {
			if got := a.times(b) == nil; got != first {
				t.Fatalf("a product of %d terms each is refused: %t, then %t", n, first, got)
			}
		}
	}
}
