//go:build amd64 && !purego

package grouped

// Q2G64 and Q2G128 share their routines, which are told the groups of a scale unit.
// These functions make tiles of them for units of so many groups.

func unitStream(unit int, f func(y *float32, codes, scales *byte, stride int, acts *byte, groups int, next uintptr, unit int)) streamTile {
	return func(y *float32, codes, scales *byte, stride int, acts *byte, groups int, next uintptr) {
		f(y, codes, scales, stride, acts, groups, next, unit)
	}
}

func unitTiles(unit int, routines ...func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups, unit int)) []tileFunc {
	tiles := make([]tileFunc, len(routines))
	for i, f := range routines {
		tiles[i] = func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int) {
			f(y, ld, codes, scales, stride, acts, lda, groups, unit)
		}
	}
	return tiles
}

func unitPairs(unit int, routines ...func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int, next uintptr, unit int)) []pairTile {
	tiles := make([]pairTile, len(routines))
	for i, f := range routines {
		tiles[i] = func(y *float32, ld int, codes, scales *byte, stride int, acts *byte, lda, groups int, next uintptr) {
			f(y, ld, codes, scales, stride, acts, lda, groups, next, unit)
		}
	}
	return tiles
}

func unitPanel(unit int) *panelTiles {
	p := &panelTiles{from: lowPanelFrom, group: lowPanelGroup}
	p.write = func(dst, codes, scales *byte, ahead, groups int) {
		panelQ2AVX2(dst, codes, scales, ahead, groups, unit)
	}
	for _, f := range []func(y *float32, ld int, panel, acts *byte, lda int, fetch *byte, ahead, lines, groups, unit int){groupedQ2PanelAVX2x3, groupedQ2PanelAVX2x4} {
		p.tiles = append(p.tiles, func(y *float32, ld int, panel, acts *byte, lda int, fetch *byte, ahead, lines, groups int) {
			f(y, ld, panel, acts, lda, fetch, ahead, lines, groups, unit)
		})
	}
	return p
}
