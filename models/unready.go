package models

import (
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
)

// unready reports what a file needs and the graph has not: it would load and
// answer wrongly.
func unready(f *gguf.File) error {
	for key := range f.Metadata {
		if strings.HasPrefix(key, "prism.hadamard.") {
			return fmt.Errorf("%w: the keys prism.hadamard.* say that weights are rotated by Hadamard transforms, which are not supported: "+
				"activations would have to be rotated too", ErrModel)
		}
	}
	return nil
}
