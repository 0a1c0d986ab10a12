//go:build amd64 && !purego

package grouped

import (
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// Routines of codes that name small levels get these last, at the beginning of a matrix.Levels.
type (
	levelStream func(y *float32, codes, scales *byte, stride int, acts *byte, groups int, next uintptr, levels *int8)
	levelTile   func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int, levels *int8)
	levelPair   func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int, next uintptr, levels *int8)
	levelWriter func(dst, codes, scales *byte, ahead, groups int, levels *int8)
)

// levelPanelFrom is the number of tokens from which panels pay.
const levelPanelFrom = 3

// levelTilesOf returns the tiles of a packing and a family that multiply these levels.
func levelTilesOf(f family, p matrix.Packing, levels *matrix.Levels) tileSet {
	one, table := levelStreams[f][p], &levels.Of[0]
	t := tileSet{bands: f.streamBands()}
	t.one = func(y *float32, codes, scales *byte, stride int, acts *byte, groups int, next uintptr) {
		one(y, codes, scales, stride, acts, groups, next, table)
	}
	t.direct = bands.Bind(levelTiles[f][p], func(f levelTile) tileFunc {
		return func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int) {
			f(y, ld, codes, scales, stride, acts, lda, groups, table)
		}
	})
	t.pair = bands.Bind(levelPairs[f][p], func(f levelPair) pairTile {
		return func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int, next uintptr) {
			f(y, ld, codes, scales, stride, acts, lda, groups, next, table)
		}
	})
	if f == avx2 { // raised levels are multiplied as codes of six bits are
		write := levelWriters[p]
		t.panel = panelOf(matrix.Q6)
		t.panel.from = levelPanelFrom
		t.panel.write = func(dst, codes, scales *byte, ahead, groups int) { write(dst, codes, scales, ahead, groups, table) }
	}
	return t
}
