//go:build !amd64 || purego

package grouped

import "github.com/lutra-lm/lutra/kernels/matrix"

// Methods lists how this machine can multiply matrices of a packing with several tokens.
func Methods(matrix.Packing) []string { return []string{MAD} }

func chosen(matrix.Packing) (method, why string) { return MAD, "" }
