//go:build amd64 && !purego

package ternary

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// gfniKernel multiplies digits with VPDPBUSD for processors whose multipliers share
// their ports with what unpacks digits: few rows × many tokens in registers, digits in
// one operation (I2: VGF2P8AFFINEQB), and unpacked once for all tiles of tokens.
var gfniKernel = &kernel{
	name: "avx512:gfni",
	isa:  cpu.AVX512,
	form: func(p matrix.Packing, n int) (actForm, int) {
		if n <= gfniMost {
			return formTiles, n
		}
		return formTiles, cpu.TileWidth(n, len(gfniKeeps[tritsPerByte(p)-4])-1)
	},
	strips:    16,
	perThread: 8,
	mul:       mulGFNI,
}

const (
	gfniTall = 5  // tokens of the widest tile of 64 rows
	gfniRows = 32 // of wider tiles, and of a panel
	gfniMost = 14 // tokens of the widest tile, of 16 rows
)

// gfniKeep is a tile that keeps what it unpacks in a panel [blocks][g][32][4], which a
// vnniFunc of gfniPanels multiplies.
type gfniKeep func(w *byte, act *int8, blocks int, negSum *int32, tokens, rows, y *float32, ldy int, panel *byte)

// gfniTalls are tiles of 64 rows of I2 and I1 by tokens, gfniTiles of 32
// rows, of 16 where there is no panel tile as wide, and
// gfniKeeps the tiles among them that keep a panel. Where few tokens gain nothing, the tiles are
// vnniKernel's.
var (
	gfniTalls = [2][gfniTall + 1]vnniFunc{
		{1: gfni4x64x1AVX512, gfni4x64x2AVX512, gfni4x64x3AVX512, gfni4x64x4AVX512, gfni4x64x5AVX512},
		{1: vnni5x64x1AVX512, vnni5x64x2AVX512, vnni5x64x3AVX512, gfni5x64x4AVX512, gfni5x64x5AVX512},
	}
	gfniTiles = [2][]vnniFunc{
		{6: gfni4x32x6AVX512, gfni4x32x7AVX512, gfni4x32x8AVX512, gfni4x32x9AVX512, gfni4x32x10AVX512, gfni4x32x11AVX512, gfni4x32x12AVX512, gfni4x32x13AVX512,
			14: gfni4x16x14AVX512},
		{6: gfni5x32x6AVX512, gfni5x32x7AVX512, gfni5x32x8AVX512, gfni5x32x9AVX512, gfni5x32x10AVX512, gfni5x32x11AVX512, gfni5x32x12AVX512,
			13: gfni5x16x13AVX512, gfni5x16x14AVX512},
	}
	gfniKeeps = [2][]gfniKeep{
		{6: gfniKeep4x32x6AVX512, gfniKeep4x32x7AVX512, gfniKeep4x32x8AVX512, gfniKeep4x32x9AVX512, gfniKeep4x32x10AVX512, gfniKeep4x32x11AVX512, gfniKeep4x32x12AVX512, gfniKeep4x32x13AVX512},
		{6: gfniKeep5x32x6AVX512, gfniKeep5x32x7AVX512, gfniKeep5x32x8AVX512, gfniKeep5x32x9AVX512, gfniKeep5x32x10AVX512, gfniKeep5x32x11AVX512, gfniKeep5x32x12AVX512},
	}
	gfniPanels = [...]vnniFunc{1: gfniPanel32x1AVX512, gfniPanel32x2AVX512, gfniPanel32x3AVX512, gfniPanel32x4AVX512, gfniPanel32x5AVX512, gfniPanel32x6AVX512, gfniPanel32x7AVX512,
		gfniPanel32x8AVX512, gfniPanel32x9AVX512, gfniPanel32x10AVX512, gfniPanel32x11AVX512, gfniPanel32x12AVX512, gfniPanel32x13AVX512}
)

// gfniPanelBytes is the largest panel kept: what is unpacked again is faster than what
// has left L2. Tests set it.
var gfniPanelBytes = 512 << 10

func mulGFNI(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
	l := m.l
	rows := StripRows // multiplied with all tokens before the next ones
	size := l.blocks * acts.BlockBytes * l.g * gfniRows
	keep := r.width > gfniTall && tokens.hi-tokens.lo > r.width && size <= gfniPanelBytes
	if keep {
		rows = gfniRows
		s.panel = cpu.Grow(s.panel, size)
	}
	for lo := strips.lo * StripRows; lo < min(strips.hi*StripRows, l.w.Rows); lo += rows {
		for n := tokens.lo; n < tokens.hi; n += r.width {
			t := extent{n, min(n+r.width, tokens.hi)}
			switch {
			case keep:
				m.gfniTile(r, s, lo, t, gfniRows, true, n == tokens.lo)
			case t.hi-t.lo <= gfniTall:
				m.gfniTile(r, s, lo, t, StripRows, false, false)
			default:
				step := gfniRows
				if t.hi-t.lo >= len(gfniKeeps[l.g-4]) {
					step = gfniRows / 2
				}
				for row := lo; row < min(lo+rows, l.w.Rows); row += step {
					m.gfniTile(r, s, row, t, step, false, false)
				}
			}
		}
	}
}

// gfniTile multiplies rows, from row on, with a tile of tokens; by way of a panel, which
// the first tile writes.
func (m *Task) gfniTile(r *segmentRun, s *scratch, row int, tokens extent, rows int, keep, first bool) {
	l, n, width := m.l, tokens.lo, tokens.hi-tokens.lo
	w := &l.stripData(row / StripRows)[row%StripRows*acts.BlockBytes]
	act := &r.act[(n-r.lo)*l.blocks*acts.BlockBytes*l.g]
	there := min(rows, l.w.Rows-row)
	y, ldy := m.y[n*l.w.Rows+row:], l.w.Rows
	if there < rows {
		y, ldy = s.edge, StripRows
	}
	neg, scale, of := &m.t.NegSum[n], &m.t.Scale[n], &l.scale[row]
	switch {
	case keep && first:
		gfniKeeps[l.g-4][width](w, act, l.blocks, neg, scale, of, &y[0], ldy, &s.panel[0])
	case keep:
		gfniPanels[width](&s.panel[0], act, l.blocks*l.g, neg, scale, of, &y[0], ldy)
	case rows == StripRows:
		gfniTalls[l.g-4][width](w, act, l.blocks, neg, scale, of, &y[0], ldy)
	default:
		gfniTiles[l.g-4][width](w, act, l.blocks, neg, scale, of, &y[0], ldy)
	}
	if there < rows {
		for t := range width {
			copy(m.y[(n+t)*l.w.Rows+row:][:there], s.edge[t*StripRows:])
		}
	}
}
