// Package grouped emits the kernels of kernels/grouped.
package grouped

import (
	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Sizes of the layouts.
const (
	planeBytes  = dense.BandRows * 4
	nibbleBytes = 4 * planeBytes
	superGroups = 8
	avx2Tokens  = 4 // widest tiles of whole bands: what the registers hold
	streamBands = 2 // of one token in AVX2
	wideBands   = 4 // of one token in AVX-512
)

// mixedStart is the offset of an int16 pair in a mixed activation record.
const mixedStart = 36

// packing is a layout of codes and scales.
type packing struct {
	name      string
	codeBytes int
	unitBytes int
	unit      int // groups in a scale unit; 0: 2 or 4, as routines are told
	widest    int // tokens of a tile over a panel: what the registers hold; 0: there are no panels
	low       int // bits of a code of one or two bits
	raised    int // of codes that name levels: what is added to these, that they are unsigned; else 0
	scales    int // byte scales of a superblock's group and row
}

var packings = []packing{
	{name: "Q4", codeBytes: nibbleBytes, unitBytes: 2 * dense.BandRows, unit: 1, widest: 4},
	{name: "Q4M", codeBytes: nibbleBytes, unitBytes: 4*dense.BandRows + superGroups*2*dense.BandRows, unit: superGroups, widest: 4, scales: 2},
	{name: "Q41", codeBytes: nibbleBytes, unitBytes: 4 * dense.BandRows, unit: 1, widest: 4},
	{name: "Q6", codeBytes: nibbleBytes + 2*planeBytes, unitBytes: 2*dense.BandRows + 2*superGroups*dense.BandRows, unit: superGroups, widest: 6, scales: 2},
	{name: "Q8", codeBytes: 8 * planeBytes, unitBytes: 2 * dense.BandRows, unit: 1},
	{name: "FP4", codeBytes: nibbleBytes, unitBytes: 2 * dense.BandRows, unit: 1, widest: 4},
}

// tallest returns the number of tokens of the widest tile of AVX2 that reads codes itself.
func (p packing) tallest() int {
	switch {
	case p.name == "Q8":
		return tallTokens
	case p.raised > 0:
		return 2 // more go over panels
	}
	return avx2Tokens
}

// panelTokens returns the numbers of tokens of AVX2's tiles over a panel. Where panels pay for many
// tokens alone, tiles that read codes multiply what fours leave.
func (p packing) panelTokens() []int {
	if p.super() {
		return emit.Widths(3, p.widest)
	}
	return emit.Widths(p.widest, p.widest)
}

// least reports whether weights are a scale times an unsigned code, less a minimum.
func (p packing) least() bool { return p.name == "Q4M" || p.name == "Q41" }

// super reports whether d multiplies the sums of whole superblocks.
func (p packing) super() bool { return p.name == "Q6" || p.raised > 0 }

// Kernels emits products with integer codes in groups of 32 columns.
// kernels/grouped/mul.go states what is computed, kernels/acts/groups.go and
// kernels/grouped/grouped.go the layouts.
func Kernels() {
	for _, p := range packings {
		narrow(p, streamBands, 1)
		wide(p, "AVX512")
		for _, t := range emit.Widths(1, p.tallest()) {
			narrow(p, 1, t)
		}
		for _, t := range emit.Widths(2, pairTokens) {
			pair(p, t)
		}
	}
	for _, p := range packings {
		if p.widest == 0 {
			continue
		}
		panelWriter(p)
		for _, t := range p.panelTokens() {
			panelTile(p, t)
		}
	}
}
