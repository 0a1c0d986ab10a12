//go:build amd64 && !purego

package grouped

import "github.com/lutra-lm/lutra/kernels/bands"

// Q2G64 and Q2G128 share their routines, which get the number of groups of a scale unit last.
type (
	unitStream func(y *float32, codes, scales *byte, stride int, acts *byte, groups int, next uintptr, unit int)
	unitTile   func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups, unit int)
	unitPair   func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int, next uintptr, unit int)
	unitPanel  func(y *float32, ld int, panel, acts *byte, lda int, fetch *byte, ahead, lines, groups, unit int)
)

// Panels of AVX2: the tokens from which they pay, and the bytes of a group.
const (
	unitPanelFrom  = 12
	unitPanelGroup = 576
)

// unitTilesOf returns the tiles of codes of two bits with so many groups in a scale unit.
func unitTilesOf(f family, unit int) tileSet {
	t := tileSet{one: bindUnitStream(unit, unitStreams[f]), bands: f.streamBands(), pair: bindUnitPairs(unit, unitPairs[f])}
	t.direct = bands.Bind(unitTiles[f], func(f unitTile) tileFunc {
		return func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int) {
			f(y, ld, codes, scales, stride, acts, lda, groups, unit)
		}
	})
	if f != avx2 {
		return t
	}
	t.panel = &panelTiles{from: unitPanelFrom, group: unitPanelGroup}
	t.panel.write = func(dst, codes, scales *byte, ahead, groups int) {
		unitWriters(dst, codes, scales, ahead, groups, unit)
	}
	t.panel.tiles = bands.Bind(unitPanels, func(f unitPanel) panelTile {
		return func(y *float32, ld int, panel, acts *byte, lda int, fetch *byte, ahead, lines, groups int) {
			f(y, ld, panel, acts, lda, fetch, ahead, lines, groups, unit)
		}
	})
	return t
}

func bindUnitStream(unit int, f unitStream) streamTile {
	return func(y *float32, codes, scales *byte, stride int, acts *byte, groups int, next uintptr) {
		f(y, codes, scales, stride, acts, groups, next, unit)
	}
}

func bindUnitPairs(unit int, tiles bands.Tiles[unitPair]) bands.Tiles[pairTile] {
	return bands.Bind(tiles, func(f unitPair) pairTile {
		return func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int, next uintptr) {
			f(y, ld, codes, scales, stride, acts, lda, groups, next, unit)
		}
	})
}
