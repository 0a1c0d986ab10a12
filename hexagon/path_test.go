package hexagon

import (
	"testing"

	"github.com/lutra-lm/lutra/hexagon/layout"
)

func TestFewRowsGoByLookupsAndMoreByTiles(t *testing.T) {
	for _, f := range []layout.Format{layout.Ternary, layout.Binary, layout.Q4_0, {Bits: 2, A: 1, B: 1, Group: 64}} {
		w, err := layout.New(2048, 2048, f)
		if err != nil {
			t.Fatal(err)
		}
		b := newBounds(PathAuto)
		n := b.lookups(w)
		if n < 1 || n >= layout.Tile {
			t.Errorf("%d bits: lookups up to %d rows", f.Bits, n)
		}
		t.Logf("%d bits in groups of %d: lookups up to %d rows", f.Bits, f.Group, n)
		b.path = PathTiles
		if n := b.lookups(w); n != 0 {
			t.Errorf("lookups of %d rows where tiles are asked for", n)
		}
	}
	w, err := layout.New(128, 256, layout.IQ4_NL)
	if err != nil {
		t.Fatal(err)
	}
	b := newBounds(PathLookup)
	if n := b.lookups(w); n != 0 {
		t.Errorf("lookups of %d rows for values that are no line", n)
	}
}
