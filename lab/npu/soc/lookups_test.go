package soc

import (
	"testing"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/layout"
)

// measuredChip is the one that both papers measure.
const measuredChip = "8gen3"

// shapes are matrices of models from 0.5 to 8 billion weights, [M][K].
var shapes = [][2]int{
	{1024, 1024}, {2048, 1024}, {3072, 1024}, {1024, 3072}, {1536, 1536}, {8960, 1536}, {1536, 8960}, {2048, 2048}, {8192, 2048}, {2048, 8192},
	{2560, 2560}, {640, 2560}, {6912, 2560}, {2560, 6912}, {4096, 4096}, {1024, 4096}, {14336, 4096}, {4096, 14336}, {11008, 4096}, {4096, 11008},
}

// formats are what models have on the device.
var formats = map[string]layout.Format{
	"ternary": layout.Ternary, "binary": layout.Binary, "Q1_0": {Bits: 1, A: 2, B: 1, Group: 128}, "Q2_0": {Bits: 2, A: 1, B: 1, Group: 64},
	"PQ2_0": {Bits: 2, A: 1, B: 1, Group: 128}, "Q4_0": layout.Q4_0, "Q4_1": {Bits: 4, A: 1, Group: 32, Offsets: true}, "IQ4_NL": layout.IQ4_NL, "Q8_0": layout.Q8_0,
	"4 bits": {Bits: 4, A: 1, B: 8}, "4 bits in 64": {Bits: 4, A: 1, B: 8, Group: 64}, "4 bits in 128": {Bits: 4, A: 1, B: 8, Group: 128},
}

// matrixIn returns a matrix of a shape in a format.
func matrixIn(f layout.Format, shape [2]int) Matrix {
	x := Matrix{M: shape[0], K: shape[1], Bits: f.Bits, Group: f.Group, Offsets: f.Offsets, Levels: f.Values != nil}
	if x.Group == 0 {
		x.Group = x.K
	}
	return x
}

// fewRows is a batch whose tables leave the search enough of TCM. The plan also keeps room there for tiles of products.
const fewRows = 8

func TestTheTilesOfLookupsAreThoseOfTheSearch(t *testing.T) {
	chip, err := Named(measuredChip)
	if err != nil {
		t.Fatal(err)
	}
	same, all := 0, 0
	for name, f := range formats {
		for _, s := range shapes {
			x := matrixIn(f, s)
			l, err := chip.Plan(x, fewRows)
			if err != nil {
				t.Fatal(err)
			}
			p, want := x.Padded(), l.Search.Choice
			strips, cols, workers := hexagon.LookupTiles(p.M, p.K)
			if strips != want.MIterD || workers != int(chip.Threads.Value) {
				t.Errorf("%s of %d×%d: tiles of %d strips for %d workers, the search has %d for %v", name, s[0], s[1], strips, workers, want.MIterD, chip.Threads.Value)
			}
			if all++; cols == want.Cols() {
				same++
			} else {
				t.Logf("%s of %d×%d: %d×%d, the search has %d columns", name, s[0], s[1], strips, cols, want.Cols())
			}
		}
	}
	if 10*same < 9*all {
		t.Errorf("%d of %d tiles have the columns that the search finds", same, all)
	}
}
