package models

import "github.com/lutra-lm/lutra/models/weights"

// target is a product that adapters may add to: matrices that read the same rows, whose
// outputs stand side by side.
type target struct {
	cols  int // numbers of a row that they read
	width int // of what they make of it
	rows  []weights.Rows
}

// target notes what is made of rows of cols numbers by matrices of the file; nil of rows that
// were rotated for them, which adapters do not know.
func (l *loader) target(cols int, read *rotation, of ...weights.Rows) *target {
	if read.block != 0 || l.Err() != nil {
		return nil
	}
	t := &target{cols: cols, rows: of}
	for _, r := range of {
		t.width += r.N
	}
	l.targets = append(l.targets, t)
	return t
}

// outputTensor is the name of the matrix that makes logits, though a file may have the
// embedding alone.
const outputTensor = "output.weight"

// whole names all rows of a tensor.
func whole(tensor string, rows int) weights.Rows {
	return weights.Rows{Tensor: tensor, N: rows, Of: rows}
}
