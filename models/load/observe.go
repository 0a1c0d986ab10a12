package load

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
)

// Part names a matrix of a tensor, all or some of whose rows a product holds.
type Part struct {
	Tensor   string
	Matrix   int // among the matrices of the tensor, which are experts'
	Matrices int
}

// Rows names N of a tensor's Of rows, from Lo on.
type Rows struct {
	Tensor    string
	Lo, N, Of int
}

// partOf tells what begins at row lo of t.
func partOf(t *gguf.Tensor, lo int) Part {
	p := Part{Tensor: t.Name, Matrices: 1}
	if len(t.Dims) > 2 {
		p.Matrix, p.Matrices = lo/t.Dims[1], t.Rows()/t.Dims[1]
	}
	return p
}

// observed returns lin, whose rows Options.Observe sees, if there is one and the CPU multiplies.
func (p *Placement) observed(lin kernels.Linear, of []Part) kernels.Linear {
	if p.observe == nil || lin == nil || !p.Local() {
		return lin
	}
	return observed{lin, of, p.pool, p.observe}
}

// observed is a product whose rows somebody sees.
type observed struct {
	kernels.Linear
	of   []Part
	pool *pool.Pool
	see  func(of []Part, rows *kernels.Acts)
}

// Mul shows the rows, then multiplies.
func (o observed) Mul(y []float32, x *kernels.Acts) {
	x.MakeRows(o.pool) // rows of experts are gathered
	o.see(o.of, x)
	o.Linear.Mul(y, x)
}
