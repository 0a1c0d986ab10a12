//go:build amd64 && !purego

package grouped

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// lowTiles are the kernels of codes of one and two bits.
var lowTiles = map[cpu.ISA]map[matrix.Packing]tileSet{
	cpu.AVX2: {
		matrix.Q1G128: {bands: 2, quads: quadsQ1G128AVX2,
			direct: []tileFunc{groupedQ1G128AVX2x1x1, groupedQ1G128AVX2x1x2, groupedQ1G128AVX2x1x3, groupedQ1G128AVX2x1x4},
			lookup: &lookupTile{16, tablesQ1G128AVX2, lookupQ1G128AVX2, storeSums16AVX2}},
		matrix.Q2G64: q2AVX2(2), matrix.Q2G128: q2AVX2(4),
	},
	cpu.AVXVNNI: {
		matrix.Q1G128: {one: groupedQ1G128AVXVNNIx2x1, bands: 2,
			direct: []tileFunc{groupedQ1G128AVXVNNIx1x1, groupedQ1G128AVXVNNIx1x2, groupedQ1G128AVXVNNIx1x3, groupedQ1G128AVXVNNIx1x4, groupedQ1G128AVXVNNIx1x5, groupedQ1G128AVXVNNIx1x6, groupedQ1G128AVXVNNIx1x7, groupedQ1G128AVXVNNIx1x8},
			lookup: &lookupTile{16, tablesQ1G128AVX2, lookupQ1G128AVX2, storeSums16AVX2}},
		matrix.Q2G64: q2AVXVNNI(2), matrix.Q2G128: q2AVXVNNI(4),
	},
	cpu.AVX512: {
		matrix.Q1G128: {one: groupedQ1G128NibblesAVX512x4x1, nibbles: true, bands: 4,
			direct: []tileFunc{groupedQ1G128AVX512x1x1, groupedQ1G128AVX512x1x2, groupedQ1G128AVX512x1x3, groupedQ1G128AVX512x1x4},
			pair:   []pairTile{groupedQ1G128AVX512x2x2, groupedQ1G128AVX512x2x3, groupedQ1G128AVX512x2x4, groupedQ1G128AVX512x2x5, groupedQ1G128AVX512x2x6},
			lookup: &lookupTile{32, tablesQ1G128AVX512, lookupQ1G128AVX512, storeSums32AVX2}},
		matrix.Q2G64: q2AVX512(2), matrix.Q2G128: q2AVX512(4),
	},
}

// q2AVX2 returns the tiles of codes of two bits with so many groups in a scale unit.
func q2AVX2(unit int) tileSet {
	return tileSet{one: unitStream(unit, groupedQ2AVX2x2x1), bands: 2,
		direct: unitTiles(unit, groupedQ2AVX2x1x1, groupedQ2AVX2x1x2, groupedQ2AVX2x1x3, groupedQ2AVX2x1x4),
		panel:  unitPanel(unit)}
}

func q2AVXVNNI(unit int) tileSet {
	return tileSet{one: unitStream(unit, groupedQ2AVXVNNIx2x1), bands: 2,
		direct: unitTiles(unit, groupedQ2AVXVNNIx1x1, groupedQ2AVXVNNIx1x2, groupedQ2AVXVNNIx1x3, groupedQ2AVXVNNIx1x4, groupedQ2AVXVNNIx1x5, groupedQ2AVXVNNIx1x6, groupedQ2AVXVNNIx1x7, groupedQ2AVXVNNIx1x8)}
}

func q2AVX512(unit int) tileSet {
	return tileSet{one: unitStream(unit, groupedQ2AVX512x4x1), bands: 4,
		direct: unitTiles(unit, groupedQ2AVX512x1x1, groupedQ2AVX512x1x2, groupedQ2AVX512x1x3, groupedQ2AVX512x1x4),
		pair:   unitPairs(unit, groupedQ2AVX512x2x2, groupedQ2AVX512x2x3, groupedQ2AVX512x2x4, groupedQ2AVX512x2x5, groupedQ2AVX512x2x6)}
}

// Panels of AVX2: the tokens from which they pay, and the bytes of a group.
const (
	lowPanelFrom  = 12
	lowPanelGroup = 576
)
