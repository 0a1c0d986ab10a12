package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
)

// withoutPacking are the storage types that can be read and that no run-time
// packing holds yet.
var withoutPacking = []gguf.Type{gguf.Q1_0, gguf.Q1_0_G32, gguf.Q2_0, gguf.PQ2_0, gguf.PTQ1_0}

// unready reports what a file needs and the graph has not: it would load and
// answer wrongly, or at a small part of its speed.
func unready(f *gguf.File) error {
	for key := range f.Metadata {
		if strings.HasPrefix(key, "prism.hadamard.") {
			return fmt.Errorf("%w: the keys prism.hadamard.* say that weights are rotated by Hadamard transforms, which are not supported: "+
				"activations would have to be rotated too", ErrModel)
		}
	}
	for i := range f.Tensors {
		if t := &f.Tensors[i]; slices.Contains(withoutPacking, t.Type) {
			return fmt.Errorf("%w: tensor %s has storage type %v, which can be read but not computed with yet", ErrModel, t.Name, t.Type)
		}
	}
	return nil
}
