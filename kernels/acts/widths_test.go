package acts

import (
	"slices"
	"testing"
)

func TestTilesOfAnyNumberOfTokensHaveOneOfSevenWidths(t *testing.T) {
	for _, widest := range []int{4, 6, 8, 12} {
		for n := 1; n <= 200; n++ {
			width, tiles := TileWidth(n, widest), 0
			for left := n; left > 0; tiles++ {
				tokens := TileTokens(left, width)
				if !slices.Contains([]int{1, 2, 3, 4, 6, 8, 12}, tokens) || tokens > min(left, widest) {
					t.Fatalf("%d tokens by %d at most: a tile of %d of the %d left", n, widest, tokens, left)
				}
				left -= tokens
			}
			if most := (n+widest-1)/widest + 1; tiles > most {
				t.Errorf("%d tokens by %d at most: %d tiles, want %d", n, widest, tiles, most)
			}
		}
	}
}
