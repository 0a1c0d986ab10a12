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

// rowsByLookup holds the largest number of rows for which products by lookups take less modelled time than by the
// tile unit, for matrices of that many bits a code and columns a scale (0: the row). beside is the same where the
// tile unit multiplies bytes. A test of lab/npu/soc holds the rows to the model of a chip.
var rowsByLookup = []struct{ bits, group, rows, beside int }{
	{1, 0, 14, 10}, {1, 128, 10, 10},
	{2, 0, 9, 6}, {2, 64, 6, 6}, {2, 128, 7, 7},
	{4, 0, 5, 4}, {4, 32, 8, 8}, {4, 64, 6, 6}, {4, 128, 6, 6},
	{8, 32, 5, 5},
}

// fewRows is the same for formats that are not in the table, and for codes of four bits that stand for values.
const fewRows = 4

// LookupRows returns the largest number of rows that PathAuto, or if bytes PathInt8, multiplies by lookups before it
// takes the tile unit. A format's group is 0 for whole rows.
func LookupRows(f layout.Format, bytes bool) int {
	for _, x := range rowsByLookup {
		if x.bits == f.Bits && x.group == f.Group && f.Values == nil {
			if bytes {
				return x.beside
			}
			return x.rows
		}
	}
	return fewRows
}

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
	if o.Lookups != 0 {
		return max(0, o.Lookups)
	}
	f := w.Format
	if f.Group == w.K {
		f.Group = 0
	}
	return LookupRows(f, o.Path == PathInt8)
}

// The tiles of lookups: as many strips as keep a tile's sums in registers, and no more weights than leave room
// in TCM for two buffers of each worker. A test of lab/npu/soc holds them to the planner's search.
const (
	mostStrips     = 8
	mostTile       = 384 << 10 // weights
	lookupWorkers  = 4
	unevenSixteens = 17 // a worker may have a sixteenth more strips than it must
)

// LookupTiles returns the size of the tiles in which a matrix [m][k] is brought to TCM for lookups, and the number of
// workers that have tiles at once. It takes the most strips of which all tiles are whole and evenly shared, and then
// the longest rows.
func LookupTiles(m, k int) (strips, cols, workers int) {
	all := m / layout.Strip
	least := (all + lookupWorkers - 1) / lookupWorkers
	for strips = min(all, mostStrips); strips > 1; strips-- {
		share := (all/strips + lookupWorkers - 1) / lookupWorkers * strips
		if all%strips == 0 && 16*share <= unevenSixteens*least {
			break
		}
	}
	cols = layout.TableCols
	for n := 2 * cols; n <= k && strips*layout.Strip*n <= mostTile; n += layout.TableCols {
		if k%n == 0 {
			cols = n
		}
	}
	return strips, cols, lookupWorkers
}

// tiles returns the size of a matrix's tiles of lookups, and the number of workers that have tiles at once;
// they and the sums of its rows take at most half of TCM.
func tiles(w *layout.Weights) (strips, cols, workers int) {
	strips, cols, workers = LookupTiles(w.M, w.K)
	all := w.M / layout.Strip
	for ; ; strips /= 2 {
		n := min(workers, (all+strips-1)/strips, device.MaxWorkers)
		if strips == 1 || device.GEMVScratch(1, min(w.M, device.MaxDim), w.K, w.Bits, w.Group, w.Offsets != nil, strips, cols, n) <= device.TCMBytes/2 {
			return strips, cols, n
		}
	}
}
