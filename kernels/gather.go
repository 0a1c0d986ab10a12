package kernels

import (
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Quantise makes the form of the rows that products of a packing read, rather than
// when the first of them wants it: for rows that several workers then gather from.
func (a *Acts) Quantise(p *pool.Pool, packing matrix.Packing) {
	switch packing.Kind() {
	case meter.Ternary:
		a.Codes(p)
	case meter.Grouped:
		a.MakeGroups(p, grouped.Limit(packing))
	}
}
