package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/soc"
)

// Path is how matrices are multiplied. Lookups and tiles round differently: only with
// one of them do a row's results not depend on how many rows are computed with it.
type Path string

// The paths.
const (
	PathAuto   Path = "auto"   // few rows by lookups, more by tiles
	PathLookup Path = "lookup" // lookups on the vector unit: 14-bit activations, exact sums
	PathTiles  Path = "tiles"  // the tile unit: weights and activations in fp16
	// PathInt8 is PathLookup with activations of 8 bits, as the CPU's kernels of ternary
	// matrices have them: products of these are then the CPU's, bit for bit.
	PathInt8 Path = "int8"
)

// Paths lists all paths.
func Paths() []string {
	return []string{string(PathAuto), string(PathLookup), string(PathTiles), string(PathInt8)}
}

// levels is the largest integer that activations of lookups become.
func (p Path) levels() float32 {
	if p == PathInt8 {
		return math.MaxInt8
	}
	return device.MaxActivation
}

// bounds chooses between lookups and tiles.
type bounds struct {
	path    Path
	machine *soc.Machine
	known   map[soc.Matrix]int
}

func newBounds(p Path) bounds {
	chip, _ := soc.Named(modelledChip)
	return bounds{path: p, machine: soc.NewMachine(chip), known: map[soc.Matrix]int{}}
}

// modelledChip is the one that both papers measure.
const modelledChip = "8gen3"

// lookups is up to how many rows a matrix is multiplied by lookups: with PathAuto as
// many as are bound to take less time so on an NPU, by hexagon/soc. All devices take
// the same path.
func (b *bounds) lookups(w *layout.Weights) int {
	switch {
	case !w.Affine() || b.path == PathTiles:
		return 0
	case b.path == PathLookup || b.path == PathInt8:
		return math.MaxInt
	}
	m := soc.Matrix{M: w.M, K: w.K, Bits: w.Bits, Group: w.Group, Offsets: w.Offsets != nil}
	n, ok := b.known[m]
	for ; !ok && n < layout.Tile; n++ {
		if _, p, err := b.machine.Product(m, n+1); err != nil || p != soc.ByLookup {
			break
		}
	}
	b.known[m] = n
	return n
}
