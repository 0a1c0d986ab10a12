// Package weights packs stored tensors for the kernels.
//
//	gguf.Tensor, any storage type ──Pack──▶ matrix.Matrix
//
// It knows storage types and packings, and no file: package load reads those piece by piece.
package weights
