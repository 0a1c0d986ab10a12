//go:build purego || !(amd64 || arm64)

package grouped

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

type tileSet struct{}

func kernelFor(_ cpu.ISA, w *matrix.Matrix) bands.Kernel { return &kernel{product: productOf(w)} }

// Prepare quantises the rows of x in groups.
func (q *kernel) Prepare(p *pool.Pool, x *acts.Rows) { q.quantise(p, x) }

// Add adds the products of groups [kLo/32, kHi/32).
func (q *kernel) Add(_ *bands.Scratch, y []float32, ld, s, n int, x *acts.Rows, t, tEnd, kLo, kHi int) {
	for i := range n {
		q.addGeneric(y[i*bands.Rows:], ld, s+i, x, t, tEnd, kLo/acts.GroupCols, kHi/acts.GroupCols)
	}
}
