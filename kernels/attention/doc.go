// Package attention holds what attention does with cached keys and values: scores,
// softmax over blocks of them, and weighted sums.
package attention

//go:generate go -C ../_gen run . -family attend -pkg attention -out ../attention/asm_amd64.s -stubs ../attention/asm_amd64.go
//go:generate go -C ../_gen run . -header neon_arm64.h -to ../attention
