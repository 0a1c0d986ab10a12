package soc

import (
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/internal/npu/tiling"
)

// measuredChip is the one that both papers measure.
const measuredChip = "8gen3"

// Lookups returns a function for hexagon.Options: up to how many rows products with a
// matrix are bound to take less time by lookups than by tiles, of bytes where the matrix and the
// path allow it.
func Lookups(bytes bool) func(w *layout.Weights) int {
	chip, _ := Named(measuredChip)
	machine, known := NewMachine(chip), map[Matrix]int{}
	machine.Bytes = bytes
	return func(w *layout.Weights) int {
		m := matrixOf(w)
		n, ok := known[m]
		for ; !ok && n < tiling.MMA; n++ {
			if _, p, err := machine.Product(m, n+1); err != nil || p != ByLookup {
				break
			}
		}
		known[m] = n
		return n
	}
}

func matrixOf(w *layout.Weights) Matrix {
	return Matrix{M: w.M, K: w.K, Bits: w.Bits, Group: w.Group, Offsets: w.Offsets != nil, Levels: w.Values != nil}
}

// Tiles returns a function for hexagon.Options: the tiles that Plan chooses for a matrix and
// as many rows as go by lookups, and the threads that it chooses them for.
func Tiles(bytes bool) func(w *layout.Weights) (strips, cols, workers int) {
	chip, _ := Named(measuredChip)
	lookups := Lookups(bytes)
	return func(w *layout.Weights) (strips, cols, workers int) {
		l, err := chip.Plan(matrixOf(w), max(1, lookups(w)))
		if err != nil { // too large for one search: the smallest that lookups want
			return 1, tiling.TableTile, int(chip.Threads.Value)
		}
		return l.Search.Choice.MIterD, l.Search.Choice.Cols(), int(chip.Threads.Value)
	}
}
