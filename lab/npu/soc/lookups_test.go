package soc

import (
	"testing"

	"github.com/lutra-lm/lutra/hexagon"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/lab/npu/tiling"
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

// A server takes the path of few rows by hexagon's table, without the model of a chip.
func TestNoOtherNumberOfRowsByLookupsTakesLessTimeThanTheTables(t *testing.T) {
	chip, err := Named(measuredChip)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range formats {
		for _, bytes := range []bool{false, true} {
			m := NewMachine(chip)
			m.Bytes = bytes
			var total [tiling.MMA + 1]float64 // by the rows that go by lookups
			for _, s := range shapes {
				x := matrixIn(f, s)
				for rows := 1; rows <= tiling.MMA; rows++ {
					tiles, err := m.Tiled(x, rows, true)
					if err != nil {
						t.Fatal(err)
					}
					lookup := m.Lookup(x, rows).Seconds + m.Tables(x, rows).Seconds
					least := min(lookup, tiles.Seconds) // by which small matrices count as much as large ones
					for few := range total {
						if rows <= few {
							total[few] += lookup / least
						} else {
							total[few] += tiles.Seconds / least
						}
					}
				}
			}
			few, best := hexagon.LookupRows(f, bytes), 0
			for n := range total {
				if total[n] < total[best] {
					best = n
				}
			}
			t.Logf("%s, bytes %t: up to %d rows by lookups take %.3f of the least time", name, bytes, few, total[few]/float64(len(shapes)*tiling.MMA))
			if total[few] > 1.002*total[best] {
				t.Errorf("%s, bytes %t: the table has %d rows by lookups, %d take %.3f of their modelled time", name, bytes, few, best, total[best]/total[few])
			}
		}
	}
}

func TestTheTilesOfLookupsAreThoseOfTheSearch(t *testing.T) {
	chip, err := Named(measuredChip)
	if err != nil {
		t.Fatal(err)
	}
	same, all := 0, 0
	for name, f := range formats {
		for _, s := range shapes {
			x := matrixIn(f, s)
			l, err := chip.Plan(x, hexagon.LookupRows(f, false))
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
