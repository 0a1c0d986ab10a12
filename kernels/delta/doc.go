// Package delta holds what linear attention by the gated delta rule computes
// (Yang et al. 2024, "Gated Delta Networks"): a short causal convolution, and the
// state of a head, which each token decays, corrects and reads.
//
// A state has keys rows and as many columns as a value is long. It lies in tiles of
// Tile columns, [columns/Tile][keys][Tile]: a tile stays in the first cache while
// all tokens of a sequence pass. Tokens follow one another, also those of a prompt,
// so a token's bits depend on the tokens before it alone.
package delta

//go:generate go -C ../_gen run . -family delta -pkg delta -out ../delta/asm_amd64.s -stubs ../delta/asm_amd64.go
//go:generate go -C ../_gen run . -header neon_arm64.h -to ../delta
