package weights

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
)

// Part is what a product holds of a file: a matrix of a tensor, or rows of it.
type Part struct {
	Tensor   string
	Matrix   int // among those of the tensor, which are experts'
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

// observed is lin, whose rows Options.Observe sees, if there is one and the CPU multiplies.
func (l *Loader) observed(lin kernels.Linear, of ...Part) kernels.Linear {
	if l.opt.Observe == nil || lin == nil || !l.Local() {
		return lin
	}
	return observed{lin, of, l.opt.Pool, l.opt.Observe}
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
	x.MakeRows(o.pool) // those of experts are gathered
	o.see(o.of, x)
	o.Linear.Mul(y, x)
}
