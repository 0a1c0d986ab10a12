package hexagon

import (
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels"
)

// product holds the rows that a matrix multiplies, and the place of the results. Rows are acts',
// or rows from[i] of x, whose results are rows to[i] of y.
type product struct {
	*linear
	n    int // rows
	acts *kernels.Acts
	x    []float32
	from []int32
	y    []float32 // rows of l.Rows
	to   []int32   // nil: in order

	// Of a launch: the rows that are computed, the further ones of zeros, by lookups or
	// by tiles, and where rows and results lie.
	capacity   int
	lookup     bool
	rows, outs uint32
}

// row returns row i of what is multiplied.
func (p *product) row(i int) []float32 {
	if p.acts != nil {
		return p.acts.Row(i)
	}
	return p.x[int(p.from[i])*p.Cols:][:p.Cols]
}

// out returns row i of the results.
func (p *product) out(i int) []float32 {
	if p.to != nil {
		i = int(p.to[i])
	}
	return p.y[i*p.Rows:][:p.Rows]
}

// sets tells one content of acts from another.
func (p *product) sets() uint64 {
	if p.acts == nil {
		return 0
	}
	return p.acts.Sets()
}

// clear sets the results to zeros.
func (p *product) clear() {
	for i := range p.n {
		clear(p.out(i))
	}
}

// products multiplies rows that the host has, one product or one launch after the other.
type products struct {
	s        *session
	q        *request
	plan     *plan
	codes    activationCodes
	resident resident
	laid     [tileRows]laid // of rows that are resident in tiles of bytes
}

// resident says which activations the device has in the form that their path wants: rows
// in tiles at x, or lookup tables, or bytes in their place.
type resident struct {
	acts *kernels.Acts
	sets uint64
	path Path
	// The first row, and how many: matrices of one input differ in how many they have at once.
	first, rows int
}

// multiply computes a product, or zeros once the device has a fault.
func (ps *products) multiply(p *product, lookup bool) {
	var err error
	if lookup {
		ps.q.count(&ps.q.work.Lookups, p.n)
		err = ps.mulLookup(p)
	} else {
		ps.q.count(&ps.q.work.Tiled, p.n)
		ps.q.count(&ps.q.work.Lanes, roundUp(p.n, layout.Tile))
		err = ps.mulTiles(p)
	}
	if err == nil {
		err = ps.s.probe(p)
	}
	if err != nil {
		p.clear()
	}
}
