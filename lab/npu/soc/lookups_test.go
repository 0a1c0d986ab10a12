package soc

import (
	"testing"

	"github.com/lutra-lm/lutra/hexagon/layout"
)

func TestFewRowsGoByLookupsAndMoreByTiles(t *testing.T) {
	lookups, other := Lookups(false), Lookups(true)
	for _, f := range []layout.Format{layout.Ternary, layout.Binary, layout.Q4_0, {Bits: 2, A: 1, B: 1, Group: 64}} {
		w, err := layout.New(2048, 2048, f)
		if err != nil {
			t.Fatal(err)
		}
		n := lookups(w)
		if n < 1 || n >= layout.Tile || lookups(w) != n {
			t.Errorf("%d bits: lookups up to %d rows, then %d", f.Bits, n, lookups(w))
		}
		if o := other(w); o < 1 || o > n || f.Group != 0 && f.Group < w.K && o != n {
			t.Errorf("%d bits: lookups of up to %d rows beside tiles of bytes, of %d beside fp16", f.Bits, o, n)
		}
		t.Logf("%d bits in groups of %d: lookups up to %d rows", f.Bits, f.Group, n)
	}
}
