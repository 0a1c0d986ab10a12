package grouped

import "github.com/lutra-lm/lutra/kernels/matrix"

// Methods of multiplying several tokens, as LUTRA_KERNEL names them after the instruction
// set. They give the same bits.
const (
	MAD  = "mad"  // the tiles of the instruction set
	GFNI = "gfni" // those for two ports of 512 bits
)

// Choice returns the method that multiplies matrices of a packing with several tokens, of those
// that Methods lists, and why.
func Choice(p matrix.Packing) (method, why string) {
	if len(Methods(p)) < 2 {
		return MAD, "nothing to choose"
	}
	return chosen(p)
}

// forced is the method to use whatever would be chosen; empty: what is chosen.
var forced string

// Force has matrices that are loaded from now on multiplied by method, where they can be,
// until restore is called: for tests and benchmarks. No matrix may be loaded while it changes.
func Force(method string) (restore func()) {
	before := forced
	forced = method
	return func() { forced = before }
}
