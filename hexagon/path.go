package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
)

// Path is a way to multiply matrices. Lookups and tiles round differently: only with
// one of them do a row's results not depend on how many rows are computed with it.
type Path string

// The paths.
const (
	PathAuto   Path = "auto"   // few rows by lookups, more by tiles
	PathLookup Path = "lookup" // the vector unit, by lookups or products of bytes: 14-bit activations, exact sums
	PathTiles  Path = "tiles"  // the tile unit: weights and activations in fp16
	// PathInt8 is PathLookup with activations of 8 bits, as the CPU's kernels of ternary
	// matrices have them: products of these are then the CPU's, bit for bit. More than few rows of
	// matrices with a scale a row go by the tile unit in int8, to the same bits.
	PathInt8 Path = "int8"
)

// pathBytes is PathLookup of matrices in bytes: what their activations become.
const pathBytes Path = "bytes"

// Paths lists all paths.
func Paths() []string {
	return []string{string(PathAuto), string(PathLookup), string(PathTiles), string(PathInt8)}
}

// levels returns the largest integer that activations of lookups become.
func (p Path) levels() float32 {
	if p == PathInt8 {
		return math.MaxInt8
	}
	return device.MaxActivation
}

// fewRows is the number of rows that PathAuto multiplies by lookups where Options do not say it.
const fewRows = 4

// lookups returns up to how many rows a matrix is multiplied by lookups. All devices take the
// same path.
func (o *Options) lookups(w *layout.Weights) int {
	switch {
	case !w.Integers() || o.Path == PathTiles:
		return 0
	case o.Path == PathLookup || o.Path == PathInt8:
		return math.MaxInt
	}
	return o.few(w)
}

// few returns up to how many rows are few.
func (o *Options) few(w *layout.Weights) int {
	if o.Lookups == nil {
		return fewRows
	}
	return o.Lookups(w)
}

// Tiles where Options do not say them.
const (
	fewStrips  = 4
	fewCols    = layout.TableCols
	fewWorkers = 4
)

// tiles returns the size of a matrix's tiles of lookups, and how many workers have some at once;
// they and the sums of its rows take at most half of TCM.
func (o *Options) tiles(w *layout.Weights) (strips, cols, workers int) {
	strips, cols, workers = fewStrips, fewCols, fewWorkers
	if o.Tiles != nil {
		strips, cols, workers = o.Tiles(w)
	}
	all := w.M / layout.Strip
	strips, cols = min(strips, all, device.MaxStrips), min(cols, w.K)
	for ; ; strips /= 2 {
		n := min(workers, (all+strips-1)/strips, device.MaxWorkers)
		if strips == 1 || device.GEMVScratch(1, min(w.M, device.MaxDim), w.K, w.Bits, w.Group, w.Offsets != nil, strips, cols, n) <= device.TCMBytes/2 {
			return strips, cols, n
		}
	}
}
