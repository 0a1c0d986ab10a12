// Package weights turns the tensors of a model file into what models compute with.
//
//	gguf.Tensor, any storage type ──pack──▶ matrix.Matrix ──Stack, Backend.Load──▶ product
//
// A Loader reads a file's tensors piece by piece: vectors into the heap, matrices
// repacked for the kernels into memory of their own. It knows tensors by the names
// it is given, and no architecture.
package weights
