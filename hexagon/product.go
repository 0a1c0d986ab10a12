package hexagon

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/kernels"
)

// product is rows that a matrix multiplies, and where the results go. Rows are those
// of acts, or rows from[i] of x, whose results are rows to[i] of y.
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

// multiply computes a product, or zeros once the device has a fault.
func (b *Backend) multiply(p *product, lookup bool) {
	var err error
	if lookup {
		b.count(&b.work.Lookups, p.n)
		err = b.mulLookup(p)
	} else {
		b.count(&b.work.Tiled, p.n)
		b.count(&b.work.Lanes, roundUp(p.n, layout.Tile))
		err = b.mulTiles(p)
	}
	if err == nil {
		err = b.probe(p)
	}
	if err != nil {
		p.clear()
	}
}

// count adds to what the device has done, unless the host does it.
func (b *Backend) count(what *int64, n int) {
	if !b.hosted {
		*what += int64(n)
	}
}

// probe computes one of the results here as well, another one each time. A device
// that answers nonsense is found out before anybody reads it.
func (b *Backend) probe(p *product) error {
	b.probes++
	n, m := int(b.probes%uint64(p.n)), int(b.probes*0x9e3779b97f4a7c15>>32%uint64(p.Rows))
	if cap(b.weights) < p.Cols {
		b.weights = make([]float32, max(b.mostK, p.Cols))
	}
	w, row := b.weights[:p.Cols], p.row(n)
	p.weightsOf(w, m)
	var want, size, sum, most float64
	for k, f := range row {
		v := float64(f) * float64(w[k])
		want, size, sum = want+v, size+math.Abs(v), sum+math.Abs(float64(w[k]))
		most = max(most, math.Abs(float64(f)))
	}
	groups := float64(p.K / p.Group)
	within := sum*leastMost + size/256 + most*(sum*2+groups*math.Abs(float64(p.R[m])))/float64(b.levels)
	if got := float64(p.out(n)[m]); !(math.Abs(got-want) <= within) && want-want == 0 {
		return b.fail("it computed %v where %v ± %v is right, output %d of a matrix of %dx%d", got, want, within, m, p.Rows, p.Cols)
	}
	return nil
}
