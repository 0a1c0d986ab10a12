//go:build purego || !(amd64 || arm64)

package kernels

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

type groupedTiles struct{}

func groupedTilesFor(cpu.ISA, Packing) groupedTiles { return groupedTiles{} }

func (q *groupedKernel) prepare(p *pool.Pool, x *Acts) { x.makeGrouped(p) }

func (q *groupedKernel) add(_ *bandScratch, y []float32, ld, s, n int, x *Acts, t, tEnd, kLo, kHi int) {
	for i := range n {
		q.addGeneric(y[i*bandRows:], ld, s+i, x, t, tEnd, kLo/groupCols, kHi/groupCols)
	}
}

// quantizeGroupsFast does no group: the portable code does them all.
func quantizeGroupsFast([]byte, []float32) int { return 0 }
