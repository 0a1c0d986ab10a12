// Command grouped writes the assembly of products with integer codes in groups
// of 32 columns. grouped_mul.go states what is computed, acts_grouped.go and
// grouped.go the layouts.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

// Sizes of the layouts.
const (
	bandRows    = 16
	planeBytes  = bandRows * 4
	nibbleBytes = 4 * planeBytes
	superGroups = 8
	actRecord   = 64
	avx2Tokens  = 4 // widest tiles: what the registers hold
	wideTokens  = 8
)

// Offsets in an activation record.
const (
	recScale  = 32
	recSum    = 36
	recStart4 = 40 // int16 pair
	recSum8   = 44 // -8·Σq
	recStart6 = 48 // two int16 pairs
	recHalf32 = 56 // -32·Σq of each half
)

// packing is a layout of codes and scales.
type packing struct {
	name      string
	codeBytes int
	unitBytes int
	unit      int // groups in a scale unit
}

var packings = []packing{
	{"Q4", nibbleBytes, 2 * bandRows, 1},
	{"Q4M", nibbleBytes, 4*bandRows + superGroups*2*bandRows, superGroups},
	{"Q6", nibbleBytes + 2*planeBytes, 2*bandRows + 2*superGroups*bandRows, superGroups},
	{"Q8", 8 * planeBytes, 2 * bandRows, 1},
}

func main() {
	ConstraintExpr("amd64,!purego")
	for _, p := range packings {
		for t := 1; t <= avx2Tokens; t++ {
			narrow(p, t)
		}
		for t := 1; t <= wideTokens; t++ {
			wide(p, t)
		}
	}
	quantize()
	Generate()
}
