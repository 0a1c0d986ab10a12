//go:build purego || !(amd64 || arm64)

package kernels

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

type groupedTiles struct{}

func groupedTilesFor(cpu.ISA, Packing) groupedTiles { return groupedTiles{} }

// Prepare quantises the rows of x in groups.
func (q *groupedKernel) Prepare(p *pool.Pool, x *Rows) { x.MakeGroups(p) }

// Add adds the products of groups [kLo/32, kHi/32).
func (q *groupedKernel) Add(_ *Scratch, y []float32, ld, s, n int, x *Rows, t, tEnd, kLo, kHi int) {
	for i := range n {
		q.addGeneric(y[i*bandRows:], ld, s+i, x, t, tEnd, kLo/GroupCols, kHi/GroupCols)
	}
}
