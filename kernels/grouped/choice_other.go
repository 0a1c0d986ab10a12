//go:build !amd64 || purego

package grouped

import (
	"github.com/lutra-lm/lutra/kernels/choice"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// Methods lists how this machine can multiply matrices of a packing.
func Methods(matrix.Packing) []string { return []string{MAD} }

var usual = choice.Always(MAD)

// prepare has nothing to do where there is one method.
func prepare(*pool.Pool, matrix.Packing) ([]byte, func(string, int), error) { return nil, nil, nil }
