package models

import (
	"slices"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models/load"
)

// tensors is where the parts of a graph find their weights, as products of the graph.
type tensors struct {
	*load.Tensors
	rotations   *load.Rotations
	targets     []*adapterSite  // products that adapters may add to
	backend     kernels.Backend // where matrices go first; nil: the CPU
	accelerator Accelerator     // the backend, if it is one
}

// product multiplies rows by matrices of the file that read the same rows. Their outputs stand side by side.
type product struct {
	load.Stacked
	cols    int           // of the rows that it reads
	rotated load.Rotation // of those
	on      *adapterSite  // what adapters add to; nil: nothing
}

// product loads matrices that read rows of cols numbers.
func (t *tensors) product(cols int, stored ...*load.Stored) product {
	p := product{Stacked: t.Stack(stored...), cols: cols}
	p.on = t.adapterSite(cols, p.Rows...)
	return p
}

// rotatedProduct loads matrices that may have been rotated ahead of their quantisation.
func (t *tensors) rotatedProduct(cols int, stored ...*load.Stored) product {
	if t.Err() != nil {
		return product{}
	}
	var names []string
	for _, m := range stored {
		if !slices.Contains(names, m.Tensor()) {
			names = append(names, m.Tensor())
		}
	}
	r := t.rotations.Of(cols, names...)
	if r.Block == 0 {
		return t.product(cols, stored...)
	}
	return product{Stacked: t.Stack(stored...), cols: cols, rotated: r} // which adapters do not know
}

// matrix loads one matrix [rows][cols].
func (t *tensors) matrix(name string, rows, cols int) product {
	return t.product(cols, t.Whole(name, rows, cols))
}

// rotatedMatrix loads one matrix that may have been rotated.
func (t *tensors) rotatedMatrix(name string, rows, cols int) product {
	return t.rotatedProduct(cols, t.Whole(name, rows, cols))
}

// plainMatrix loads one matrix, to whose products adapters do not add.
func (t *tensors) plainMatrix(name string, rows, cols int) product {
	return product{Stacked: t.Stack(t.Whole(name, rows, cols)), cols: cols}
}

// adapterSite notes what is made of rows of cols numbers by matrices of the file.
func (t *tensors) adapterSite(cols int, of ...load.Rows) *adapterSite {
	if t.Err() != nil {
		return nil
	}
	on := &adapterSite{cols: cols, rows: of, matrices: 1}
	for _, r := range of {
		on.width += r.N
	}
	t.targets = append(t.targets, on)
	return on
}

// none tells whether there is no matrix.
func (p *product) none() bool { return p.Sum == 0 }

// read has the products that follow read x, rows of s, which it rotates in place.
func (p *product) read(s *rowShard, x []float32) {
	s.ops.rotate(x, s.rows, p.cols, &p.rotated)
	s.acts.Set(x, s.rows, p.cols)
}

// multiply sets y to the products of the rows that s.acts holds, with what adapters add.
func (p *product) multiply(s *rowShard, y []float32) {
	p.Mul(y, &s.acts, &s.part)
	s.adapt(y, p.on)
}

// run sets y to the products of x.
func (p *product) run(s *rowShard, y, x []float32) {
	p.read(s, x)
	p.multiply(s, y)
}
