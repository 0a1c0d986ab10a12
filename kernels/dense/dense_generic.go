//go:build purego || !(amd64 || arm64)

package dense

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

type tileSet struct{}

func tilesFor(cpu.ISA, matrix.Packing) tileSet { return tileSet{} }

// Add is addGeneric.
func (d *kernel) Add(_ *bands.Scratch, y []float32, ld, s, n int, x *acts.Rows, t, tEnd, kLo, kHi int) {
	d.addGeneric(y, ld, s, n, x, t, tEnd, kLo, kHi)
}
