package models

import "github.com/lutra-lm/lutra/kernels/cpu"

// normedStack is matrices that read h behind an RMSNorm of their own each, as BitNet's
// embedders have them. Their outputs stand side by side.
type normedStack struct {
	norms [][]float32 // [Hidden] each
	parts []product
	sum   int // outputs of the parts
}

// loadNormedStack loads the matrices of a layer that have names and those rows each, nil if
// they have no norms of their own.
func loadNormedStack(t *tensors, m *spec, y *layerSpec, names []string, rows ...int) *normedStack {
	const norm = "_norm_in.weight"
	if !m.arch.norms.inputs || !t.Has(y.tensor(names[0]+norm)) {
		return nil
	}
	n := &normedStack{}
	for k, part := range names {
		n.norms = append(n.norms, t.Vector(y.tensor(part+norm), m.Hidden))
		n.parts = append(n.parts, t.plainMatrix(y.tensor(part+".weight"), rows[k], m.Hidden))
		n.sum += rows[k]
	}
	return n
}

// run sets dst[rows][sum] to the products of h. What y holds is lost.
func (n *normedStack) run(dst []float32, s *rowShard) {
	at := 0
	for i := range n.parts {
		p := &n.parts[i]
		width := p.Sum
		s.ops.norm(s.y, s.h, s.rows, n.norms[i], s.cfg.NormEps)
		s.part = cpu.Grow(s.part, s.rows*width)
		p.run(s, s.part, s.y)
		for row := range s.rows {
			copy(dst[row*n.sum+at:], rowOf(s.part, row, width))
		}
		at += width
	}
}
