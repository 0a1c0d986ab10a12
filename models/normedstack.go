package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
)

// normedStack is matrices that read h behind an RMSNorm of their own each, as BitNet's
// embedders have them. Their outputs stand side by side.
type normedStack struct {
	norms [][]float32 // [Hidden] each
	parts []kernels.Linear
	width []int // outputs of the parts
	sum   int   // of width
}

// normedStack loads the matrices of layer i that have names and those rows each, nil if
// they have no norms of their own.
func (l *loader) normedStack(i int, names []string, rows ...int) *normedStack {
	const norm = "_norm_in.weight"
	name := layerNames(i)
	if !l.arch.norms.inputs || l.file.Tensor(name(names[0]+norm)) == nil {
		return nil
	}
	n := &normedStack{width: rows}
	for k, part := range names {
		n.norms = append(n.norms, l.Vector(name(part+norm), l.cfg.Hidden))
		n.parts = append(n.parts, l.Matrix(name(part+".weight"), rows[k], l.cfg.Hidden))
		n.sum += rows[k]
	}
	return n
}

// run sets dst[rows][sum] to the products of h. What y holds is lost.
func (n *normedStack) run(dst []float32, s *rowShard) {
	at := 0
	for i, p := range n.parts {
		width := n.width[i]
		s.ops.norm(s.y, s.h, s.rows, n.norms[i], s.cfg.NormEps)
		s.acts.Set(s.y, s.rows, s.cfg.Hidden)
		s.part = cpu.Grow(s.part, s.rows*width)
		p.Mul(s.part, &s.acts)
		for row := range s.rows {
			copy(dst[row*n.sum+at:], rowOf(s.part, row, width))
		}
		at += width
	}
}
