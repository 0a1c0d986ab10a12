// Package delta computes linear attention by the gated delta rule
// (Yang et al. 2024, "Gated Delta Networks"): a short causal convolution, and the
// state of a head, which each token decays, corrects and reads.
//
// Tokens go through a state in chunks (Yang et al. 2024, "Parallelizing Linear
// Transformers with the Delta Rule", §3.2). The tokens of a chunk read the state as it
// stood before the chunk. A token's addition, a key and a correction, is kept apart until the
// chunk is full and all its corrections are added at once. So
// a state is read once a token and written once a chunk, and the work of a prompt is
// products of matrices.
//
// Chunks begin at every Chunk-th position of a sequence, whoever computes them, and
// each sum has one order. So a token's bits depend on the tokens before it alone: a
// prompt as a whole, in pieces of any size and token by token give the same.
//
// Selective state spaces (Mamba-2) correct nothing: their tokens go through a state one after the other, some
// while a part of it is in registers, to the same bits.
package delta

//go:generate go -C ../_gen run . -family delta -pkg delta -out ../delta/asm_amd64.s -stubs ../delta/asm_amd64.go
//go:generate go -C ../_gen run . -header neon_arm64.h -to ../delta
