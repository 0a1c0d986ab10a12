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

// LookupRows returns the largest number of rows that PathAuto multiplies by lookups before it takes the tile unit, or if
// bytes, that PathInt8 does before it takes tiles of bytes. A format's group is 0 for whole rows.
//
// The numbers are from counts of executed packets, and a test of lab/npu counts again. A layer of BitNet-2B's sizes executes
// in the emulator in each format, as a step of so many rows, by lookups alone and by tiles alone. Its instructions,
// barriers, bytes and products of tiles then take 8 Gen 3's time. Either path is bound by the vector threads. They look up
// each row, or unfold codes and turn rows into tiles and back.
//
// Where rows share codes by four, a number is as good as its neighbours: ternary layers of 18 to 20 rows take the same time
// by both paths, within 0.5 percent. A model's sizes count, too. With Falcon3-1B's wider feed-forward it would be 25 in place
// of 20, and Q4_0's 10 in place of 9. Its products of 21 rows take 7 percent longer than they could.
func LookupRows(f layout.Format, bytes bool) int {
	switch {
	case bytes: // by a layer's products alone
		return 10
	case f.Bits == 1:
		return lookupRows // more have no tables in TCM at once
	case f.Bits == 2 && f.Group == 0:
		return 20
	case f.Bits == 2 && f.Group < 128:
		return 14
	case f.Bits == 2:
		return 17
	case f.Values != nil:
		return 7
	case f.Offsets:
		return 11
	}
	return 9
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
