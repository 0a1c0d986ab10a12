package models

import "github.com/lutra-lm/lutra/models/weights"

// target is a product that adapters may add to: matrices that read the same rows, whose
// outputs stand side by side. Of experts and heads it is all of a layer's, which read rows of their
// own each.
type target struct {
	cols     int            // numbers of a row that they read
	width    int            // of what they make of it
	rows     []weights.Rows // of the first
	matrices int            // that a tensor is made of, one after the other: 1, or the experts or heads
	alone    []string       // what adapters may call those of number %d, besides; nil: nothing
}

// target notes what is made of rows of cols numbers by matrices of the file; nil of rows that
// were rotated for them, which adapters do not know.
func (l *loader) target(cols int, read *rotation, of ...weights.Rows) *target {
	if read.block != 0 || l.Err() != nil {
		return nil
	}
	t := &target{cols: cols, rows: of, matrices: 1}
	for _, r := range of {
		t.width += r.N
	}
	l.targets = append(l.targets, t)
	return t
}

// headsTarget notes what is made of each head, by matrices of one tensor.
func (l *loader) headsTarget(tensor string, heads, rows, cols int) *target {
	t := l.target(cols, &rotation{}, weights.Rows{Tensor: tensor, N: rows, Of: heads * rows})
	if t != nil {
		t.matrices = heads
	}
	return t
}

// expertTargets notes what a layer's experts make of rows: gate and up, and down.
func (l *loader) expertTargets(name func(string) string, experts int) (up, down *target) {
	of := func(cols, n int, parts ...string) *target {
		var rows []weights.Rows
		var alone []string
		for i, part := range parts {
			r := weights.Rows{Tensor: name("ffn_" + part + "_exps.weight"), N: n, Of: n * experts}
			if both := name("ffn_gate_up_exps.weight"); len(parts) > 1 && l.file.Tensor(both) != nil {
				r.Tensor, r.Lo, r.Of = both, i*n, 2*r.Of
			}
			rows, alone = append(rows, r), append(alone, name("ffn_"+part+".%d.weight"))
		}
		t := l.target(cols, &rotation{}, rows...)
		if t != nil {
			t.matrices, t.alone = experts, alone
		}
		return t
	}
	return of(l.cfg.reads, l.cfg.ExpertFFN, l.made()...), of(l.cfg.ExpertFFN, l.cfg.reads, "down")
}

// among returns how many matrices a tensor has one of: one, if it is alone.
func (t *target) among(alone bool) int {
	if alone {
		return 1
	}
	return t.matrices
}

// outputTensor is the name of the matrix that makes logits, though a file may have the
// embedding alone.
const outputTensor = "output.weight"

// whole names all rows of a tensor.
func whole(tensor string, rows int) weights.Rows {
	return weights.Rows{Tensor: tensor, N: rows, Of: rows}
}
