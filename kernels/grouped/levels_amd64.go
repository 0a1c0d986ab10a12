//go:build amd64 && !purego

package grouped

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// Routines of codes that name small levels get these last, at the beginning of a matrix.Levels.
type (
	levelStream func(y *float32, codes, scales *byte, stride int, acts *byte, groups int, next uintptr, levels *int8)
	levelTile   func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int, levels *int8)
	levelPair   func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int, next uintptr, levels *int8)
	levelWriter func(dst, codes, scales *byte, ahead, groups int, levels *int8)
)

// levelRoutines holds the routines of each packing.
var levelRoutines = map[matrix.Packing]struct {
	one    map[cpu.ISA]levelStream
	direct map[cpu.ISA][]levelTile
	pair   []levelPair // of AVX-512
	write  levelWriter // of a panel for AVX2's tiles of six bits
}{
	matrix.NL3K: {
		one: map[cpu.ISA]levelStream{cpu.AVX2: groupedNL3KAVX2x2x1, cpu.AVXVNNI: groupedNL3KAVXVNNIx2x1, cpu.AVX512: groupedNL3KAVX512x4x1},
		direct: map[cpu.ISA][]levelTile{
			cpu.AVX2: {groupedNL3KAVX2x1x1, groupedNL3KAVX2x1x2, groupedNL3KAVX2x1x3, groupedNL3KAVX2x1x4},
			cpu.AVXVNNI: {groupedNL3KAVXVNNIx1x1, groupedNL3KAVXVNNIx1x2, groupedNL3KAVXVNNIx1x3, groupedNL3KAVXVNNIx1x4,
				groupedNL3KAVXVNNIx1x5, groupedNL3KAVXVNNIx1x6, groupedNL3KAVXVNNIx1x7, groupedNL3KAVXVNNIx1x8},
			cpu.AVX512: {groupedNL3KAVX512x1x1, groupedNL3KAVX512x1x2, groupedNL3KAVX512x1x3, groupedNL3KAVX512x1x4},
		},
		pair:  []levelPair{groupedNL3KAVX512x2x2, groupedNL3KAVX512x2x3, groupedNL3KAVX512x2x4, groupedNL3KAVX512x2x5, groupedNL3KAVX512x2x6},
		write: panelNL3KAVX2,
	},
	matrix.NL4S: {
		one: map[cpu.ISA]levelStream{cpu.AVX2: groupedNL4SAVX2x2x1, cpu.AVXVNNI: groupedNL4SAVXVNNIx2x1, cpu.AVX512: groupedNL4SAVX512x4x1},
		direct: map[cpu.ISA][]levelTile{
			cpu.AVX2: {groupedNL4SAVX2x1x1, groupedNL4SAVX2x1x2, groupedNL4SAVX2x1x3, groupedNL4SAVX2x1x4},
			cpu.AVXVNNI: {groupedNL4SAVXVNNIx1x1, groupedNL4SAVXVNNIx1x2, groupedNL4SAVXVNNIx1x3, groupedNL4SAVXVNNIx1x4,
				groupedNL4SAVXVNNIx1x5, groupedNL4SAVXVNNIx1x6, groupedNL4SAVXVNNIx1x7, groupedNL4SAVXVNNIx1x8},
			cpu.AVX512: {groupedNL4SAVX512x1x1, groupedNL4SAVX512x1x2, groupedNL4SAVX512x1x3, groupedNL4SAVX512x1x4},
		},
		pair:  []levelPair{groupedNL4SAVX512x2x2, groupedNL4SAVX512x2x3, groupedNL4SAVX512x2x4, groupedNL4SAVX512x2x5, groupedNL4SAVX512x2x6},
		write: panelNL4SAVX2,
	},
}

// levelPanelFrom is the number of tokens from which panels pay.
const levelPanelFrom = 3

// levelTilesOf returns the tiles of a packing and an instruction set that multiply these levels.
func levelTilesOf(i cpu.ISA, p matrix.Packing, levels *matrix.Levels) (t tileSet) {
	r, table := levelRoutines[p], &levels.Of[0]
	one := r.one[i]
	if one == nil {
		return tileSet{}
	}
	t.one = func(y *float32, codes, scales *byte, stride int, acts *byte, groups int, next uintptr) {
		one(y, codes, scales, stride, acts, groups, next, table)
	}
	for _, f := range r.direct[i] {
		t.direct = append(t.direct, func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int) {
			f(y, ld, codes, scales, stride, acts, lda, groups, table)
		})
	}
	switch t.bands = 2; i {
	case cpu.AVX2:
		panel := *avx2Tiles[matrix.Q6].panel
		panel.from = levelPanelFrom
		panel.write = func(dst, codes, scales *byte, ahead, groups int) { r.write(dst, codes, scales, ahead, groups, table) }
		t.panel = &panel
	case cpu.AVX512:
		t.bands = 4
		for _, f := range r.pair {
			t.pair = append(t.pair, func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int, next uintptr) {
				f(y, ld, codes, scales, stride, acts, lda, groups, next, table)
			})
		}
	}
	return t
}
