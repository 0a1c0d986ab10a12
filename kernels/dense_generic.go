//go:build purego || !(amd64 || arm64)

package kernels

import "github.com/lutra-lm/lutra/kernels/cpu"

type denseTiles struct{}

func denseTilesFor(cpu.ISA, Packing) denseTiles { return denseTiles{} }

// Add is addGeneric.
func (d *denseKernel) Add(_ *Scratch, y []float32, ld, s, n int, x *Rows, t, tEnd, kLo, kHi int) {
	d.addGeneric(y, ld, s, n, x, t, tEnd, kLo, kHi)
}
