package bands

import "testing"

// tilesOfWidths returns tiles that return their number of tokens.
func tilesOfWidths(widths ...int) Tiles[func() int] {
	of := make([]func() int, widths[len(widths)-1]+1)
	for _, w := range widths {
		of[w] = func() int { return w }
	}
	return TilesOf(of)
}

// tokensOf lists the tiles of n tokens.
func tokensOf(t *testing.T, tiles Tiles[func() int], n int) (list []int) {
	for n > 0 {
		tile, tokens := tiles.Next(n)
		if tokens < 1 || tokens > n || tile() != tokens {
			t.Fatalf("a tile of %d tokens of %d", tokens, n)
		}
		list, n = append(list, tokens), n-tokens
	}
	return list
}

func TestTilesAreAsFewAndAsAlikeAsThereCanBe(t *testing.T) {
	for _, c := range []struct {
		widths []int
		n      int
		want   []int
	}{
		{[]int{1, 2, 3, 4}, 5, []int{3, 2}},
		{[]int{1, 2, 3, 4}, 8, []int{4, 4}},
		{[]int{2, 3, 4, 6}, 5, []int{3, 2}},
		{[]int{2, 3, 4, 6}, 8, []int{4, 4}},
		{[]int{2, 3, 4, 6}, 9, []int{6, 3}},
		{[]int{2, 3, 4, 6}, 16, []int{6, 6, 4}},
		{[]int{2, 3, 4, 6, 8}, 7, []int{4, 3}},
	} {
		got := tokensOf(t, tilesOfWidths(c.widths...), c.n)
		for i := range got {
			if len(got) != len(c.want) || got[i] != c.want[i] {
				t.Errorf("%d tokens of tiles of %v: %v, want %v", c.n, c.widths, got, c.want)
				break
			}
		}
	}
	if got := tokensOf(t, tilesOfWidths(2, 3, 4, 6, 8, 14).WidestFirst(), 16); len(got) != 2 || got[0] != 14 {
		t.Errorf("16 tokens by %v, want the widest tile first", got)
	}
	tiles := tilesOfWidths(1, 2, 3, 4, 6)
	for n := 6; n <= 256; n++ {
		// One more than the widest allow where these leave five.
		if got := len(tokensOf(t, tiles, n)); got > (n+5)/6+1 {
			t.Errorf("%d tokens in %d tiles", n, got)
		}
	}
}

func TestTilesMultiplyTheMostTokensThatTheyAddUpTo(t *testing.T) {
	for _, c := range []struct {
		widths  []int
		n, want int
	}{
		{[]int{4}, 3, 0}, {[]int{4}, 31, 28}, {[]int{4}, 257, 256},
		{[]int{3, 4, 6}, 5, 4}, {[]int{3, 4, 6}, 2, 0}, {[]int{3, 4, 6}, 64, 64}, {[]int{3, 4, 6}, 65, 65},
		{[]int{5, 6, 7}, 9, 7}, {[]int{5, 6, 7}, 64, 64},
	} {
		tiles := tilesOfWidths(c.widths...)
		got := tiles.Most(c.n)
		if got != c.want {
			t.Errorf("tiles of %v multiply %d of %d tokens, want %d", c.widths, got, c.n, c.want)
		}
		tokensOf(t, tiles, got)
	}
}
