// Package vector holds the primitives that work element by element: sums and
// products, exponentials, rotations, and conversions of float16, bfloat16 and int8.
package vector

//go:generate go -C ../_gen run . -family vector -pkg vector -out ../vector/asm_amd64.s -stubs ../vector/asm_amd64.go
//go:generate go -C ../_gen run . -header neon_arm64.h -to ../vector
