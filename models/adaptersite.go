package models

import "github.com/lutra-lm/lutra/models/load"

// adapterSite is a product that adapters may add to: matrices that read the same rows, whose
// outputs stand side by side. Of experts and heads it is all of a layer's, which read rows of their
// own each.
type adapterSite struct {
	cols     int         // numbers of a row that they read
	width    int         // of what they make of it
	rows     []load.Rows // of the first
	matrices int         // that a tensor is made of, one after the other: 1, or the experts or heads
	alone    []string    // the name in adapters for the tensors of number %d, besides; nil: none
}

// among returns how many matrices a tensor has one of: one, if it is alone.
func (t *adapterSite) among(alone bool) int {
	if alone {
		return 1
	}
	return t.matrices
}

// outputTensor is the name of the matrix that makes logits, though a file may have the
// embedding alone.
const outputTensor = "output.weight"
