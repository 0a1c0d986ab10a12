package bands

import "reflect"

// Tiles are routines that differ by their number of tokens.
type Tiles[F any] struct {
	of   []F     // by tokens
	next []uint8 // by tokens left: tokens of the next tile; 0: no tiles add up to so many
}

// tilesAhead is the number of widest tiles that a plan covers. Before them more of the widest follow.
const tilesAhead = 4

// TilesOf returns the tiles whose i-th multiplies i tokens, nil where there is none.
func TilesOf[F any](of []F) Tiles[F] {
	return plan(of, func(widest, best int) bool { return widest < best })
}

// WidestFirst returns the same tiles, which Next orders from the widest on.
func (t Tiles[F]) WidestFirst() Tiles[F] {
	return plan(t.of, func(widest, best int) bool { return widest > best })
}

// plan plans by as few tiles as there can be, the better ones by how wide their widest is.
func plan[F any](of []F, better func(widest, best int) bool) Tiles[F] {
	t := Tiles[F]{of, make([]uint8, tilesAhead*len(of))}
	type cost struct{ tiles, widest int }
	plans := make([]cost, len(t.next)) // of n tokens
	for n := 1; n < len(plans); n++ {
		for w := min(n, len(of)-1); w > 0; w-- {
			if reflect.ValueOf(of[w]).IsNil() || n > w && t.next[n-w] == 0 {
				continue
			}
			p := cost{plans[n-w].tiles + 1, max(plans[n-w].widest, w)}
			if best := plans[n]; t.next[n] == 0 || p.tiles < best.tiles || p.tiles == best.tiles && better(p.widest, best.widest) {
				plans[n], t.next[n] = p, uint8(w)
			}
		}
	}
	return t
}

// None reports whether there are no tiles.
func (t Tiles[F]) None() bool { return len(t.of) == 0 }

// Next returns the next tile of n tokens, and its tokens. Tiles must add up to n. They are as few as there can
// be, and then as alike; after WidestFirst the widest come first.
func (t Tiles[F]) Next(n int) (tile F, tokens int) {
	tokens = len(t.of) - 1
	if n < len(t.next) {
		tokens = int(t.next[n])
	}
	return t.of[tokens], tokens
}

// Most returns the most of n tokens that tiles add up to.
func (t Tiles[F]) Most(n int) int {
	most := n
	if beyond := n - len(t.next) + 1; beyond > 0 {
		widest := len(t.of) - 1
		most -= (beyond + widest - 1) / widest * widest
	}
	for over := n - most; most > 0; most-- {
		if t.next[most] > 0 {
			return most + over
		}
	}
	return 0
}

// Bind makes tiles of routines of another kind.
func Bind[F, G any](t Tiles[F], bind func(F) G) Tiles[G] {
	b := Tiles[G]{make([]G, len(t.of)), t.next}
	for i, f := range t.of {
		if !reflect.ValueOf(f).IsNil() {
			b.of[i] = bind(f)
		}
	}
	return b
}
