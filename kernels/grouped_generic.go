//go:build purego || !amd64

package kernels

type groupedTiles struct{}

func groupedTilesFor(ISA, Packing) groupedTiles { return groupedTiles{} }

func (q *groupedKernel) addBand(_ int, y []float32, ld, s int, x *Acts, t, tEnd, gLo, gHi int) {
	q.addGeneric(y, ld, s, x, t, tEnd, gLo, gHi)
}

// quantizeGroupsFast does no group: the portable code does them all.
func quantizeGroupsFast([]byte, []float32) int { return 0 }
