package delta

import (
	"fmt"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// SpaceTokens is the most tokens that Space takes.
const SpaceTokens = 4

// SpaceSize returns the size of the state of a head of a state space, of dim numbers and a memory of length
// each: [tiles][length][Tile]. Numbers beyond dim stay zero. A new sequence has zeros.
func SpaceSize(dim, length int) int { return SpaceDim(dim) * length }

// SpaceDim returns dim, as a multiple of Tile.
func SpaceDim(dim int) int { return (dim + Tile - 1) / Tile * Tile }

// Space takes n consecutive tokens through the state of a head, one after the other (Dao and Gu 2024,
// "Transformers are SSMs", eq. 1): with x and y of dim numbers each, a multiple of Tile, dim apart, and b and c of length
// numbers, stride apart,
//
//	state = decay·state + x·bᵀ
//	y = state·c
//
// Sums have the order of b and c. All tokens have the same bits, whichever go together.
func Space(state []float32, dim, length, n int, x, y, b, c []float32, stride int, decays []float32) {
	last := (n-1)*stride + length
	if n < 1 || n > SpaceTokens || dim < Tile || dim%Tile != 0 || length < 1 || len(state) != dim*length ||
		len(x) < n*dim || len(y) < n*dim || len(b) < last || len(c) < last || len(decays) < n {
		panic(fmt.Sprintf("kernels: %d tokens %d apart through a state of %d for %d·%d", n, stride, len(state), dim, length))
	}
	for lo := 0; lo < dim; lo += Tile {
		tile := state[lo*length:][:Tile*length]
		for t := 0; t < n; {
			if done := spaceFast(tile, length, n-t, x[t*dim+lo:], y[t*dim+lo:], dim, b[t*stride:], c[t*stride:], stride, decays[t:]); done > 0 {
				t += done
				continue
			}
			sum := y[t*dim+lo:][:Tile]
			clear(sum)
			for i := range length {
				row := tile[i*Tile:][:Tile]
				vector.ScaleInto(row, decays[t])
				vector.Axpy(row, b[t*stride+i], x[t*dim+lo:][:Tile])
				vector.Axpy(sum, c[t*stride+i], row)
			}
			t++
		}
	}
}
