package hexagon

import (
	"testing"

	"github.com/lutra-lm/lutra/hexagon/layout"
)

func TestValuesThatAreNoIntegersAreNeverLookedUp(t *testing.T) {
	line, err := layout.New(128, 256, layout.Q4_0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := layout.New(128, 256, layout.NF4)
	if err != nil {
		t.Fatal(err)
	}
	for path, looks := range map[Path]bool{"": true, PathAuto: true, PathLookup: true, PathInt8: true, PathTiles: false} {
		o := Options{Path: path, Lookups: 7}
		if n := o.lookups(line); n > 0 != looks || path == PathAuto && n != 7 {
			t.Errorf("%s: lookups of %d rows", path, n)
		}
		if n := o.lookups(other); n != 0 {
			t.Errorf("%s: lookups of %d rows for values that are no integers", path, n)
		}
	}
}
