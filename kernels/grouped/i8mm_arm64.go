//go:build arm64 && !purego

package grouped

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// panelTiles multiply by SMMLA what write unfolds first: two panels of 8 rows of a band.
type panelTiles struct {
	write      func(panel *int8, codes *byte, groups int)
	scales     func(panel, scales *byte, groups int) // unfolds them; nil: tiles read the scales of units
	scaleBytes int                                   // of 8 rows and 8 groups
	tiles      [2]panelTile
}

// panelTile adds to y[2·(i+1)][8], i its place, the products of the groups of a panel.
type panelTile func(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups, unit int)

// panelFrom is the number of tokens from which panels pay, by count of instructions.
const panelFrom = 4

// panelRows is the number of rows of a panel, which is of panelGroup bytes a group.
const (
	panelRows  = bands.Rows / 2
	panelGroup = panelRows * acts.GroupCols
)

var i8mmPanels = func() map[matrix.Packing]*panelTiles {
	units := [2]panelTile{i8mmUnit2, i8mmUnit4}
	scaled := [2]panelTile{ofGroups(i8mmScale2), ofGroups(i8mmScale4)}
	return map[matrix.Packing]*panelTiles{
		matrix.Q1G128: {panelBits, nil, 0, units},
		matrix.Q2G64:  {panelPairs, nil, 0, units},
		matrix.Q2G128: {panelPairs, nil, 0, units},
		matrix.Q4:     {nibblePanel(&lessEight), panelScales, 8 * 64, scaled},
		matrix.FP4:    {nibblePanel(&e2m1), panelScales, 8 * 64, scaled},
		matrix.Q8:     {panelBytes, panelScales, 8 * 64, scaled},
		matrix.Q4M:    {nibblePanel(&nibbles), panelScalesQ4M, 8 * 192, [2]panelTile{ofGroups(i8mmQ4Mx2), ofGroups(i8mmQ4Mx4)}},
		matrix.Q41:    {nibblePanel(&nibbles), panelScalesQ41, 8 * 192, [2]panelTile{ofGroups(i8mmQ4Mx2), ofGroups(i8mmQ4Mx4)}},
		matrix.Q6:     {panelSixBits, panelScalesQ6, 8*128 + 32, [2]panelTile{ofGroups(i8mmQ6x2), ofGroups(i8mmQ6x4)}},
	}
}()

// ofGroups makes a tile of a routine that knows how long its scale units are.
func ofGroups(f func(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)) panelTile {
	return func(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups, _ int) {
		f(y, ld, panel, scales, acts, stride, groups)
	}
}

// What nibbles of Q4, and of Q4M and Q41, stand for.
var (
	lessEight = [16]int8{-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}
	nibbles   = [16]int8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
)

func nibblePanel(levels *[16]int8) func(panel *int8, codes *byte, groups int) {
	return func(panel *int8, codes *byte, groups int) { panelNibbles(panel, codes, groups, &levels[0]) }
}

// add adds groups [gLo, gHi) of band s and pairs of tokens by way of panels in memory, and
// returns the first token that is left.
func (p *panelTiles) add(q *product, memory []byte, y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) int {
	f, n, stride := q.f, gHi-gLo, x.Groups(q.f.limit).PairStride()
	codes, scales := bandOf(q.w, s)
	codes = codes[gLo*f.codeBytes : gHi*f.codeBytes]
	scales = scales[gLo/f.unit*f.unitBytes : gHi/f.unit*f.unitBytes]
	panel, rest := memory[:2*n*panelGroup], memory[2*n*panelGroup:]
	p.write((*int8)(unsafe.Pointer(&panel[0])), &codes[0], n)
	half := panelRows * 2 // bytes to the scales of the other panel
	if p.scales != nil {
		half = n * p.scaleBytes / 8
		_ = rest[2*half-1]
		p.scales(&rest[0], &scales[0], n)
		scales = rest[:2*half]
	}
	for tEnd-t >= 2 {
		pairs := min(len(p.tiles), (tEnd-t)/2)
		rec := x.Groups(f.limit).Pairs()[t/2*stride+gLo*acts.PairBytes:]
		_, _ = y[(2*pairs-1)*ld+bands.Rows-1], rec[(pairs-1)*stride+n*acts.PairBytes-1]
		for i := range 2 {
			p.tiles[pairs-1](&y[i*panelRows], ld, (*int8)(unsafe.Pointer(&panel[i*n*panelGroup])), &scales[i*half], &rec[0], stride, n, f.unit)
		}
		if t += 2 * pairs; t < tEnd {
			y = y[2*pairs*ld:]
		}
	}
	return t
}
