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
	gfniFew  = 5  // tokens of the widest tile of 64 rows
	gfniRows = 32 // of wider tiles, and of a panel
	gfniMost = 14 // tokens of the widest tile, of 16 rows
)

// gfniKeep is a tile that keeps what it unpacks in a panel [blocks][g][32][4], which a
// vnniFunc of gfniPanels multiplies.
type gfniKeep func(w *byte, act *int8, blocks int, negSum *int32, tokens, rows, y *float32, ldy int, panel *byte)

// gfniTall returns the tile of 64 rows; where few tokens gain nothing, vnniKernel has it.
func gfniTall(g, tokens int) vnniFunc {
	if t := gfniTalls[g-4][tokens]; t != nil {
		return t
	}
	return vnniTiles[g-4][tokens]
}

// gfniPanelBytes is the largest panel kept: what is unpacked again is faster than what
// has left L2. Tests set it.
var gfniPanelBytes = 512 << 10

func mulGFNI(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
	l := m.l
	rows := StripRows // multiplied with all tokens before the next ones
	size := l.blocks * acts.BlockBytes * l.g * gfniRows
	keep := r.width > gfniFew && tokens.hi-tokens.lo > r.width && size <= gfniPanelBytes
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
			case t.hi-t.lo <= gfniFew:
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
		gfniTall(l.g, width)(w, act, l.blocks, neg, scale, of, &y[0], ldy)
	default:
		gfniTiles[l.g-4][width](w, act, l.blocks, neg, scale, of, &y[0], ldy)
	}
	if there < rows {
		for t := range width {
			copy(m.y[(n+t)*l.w.Rows+row:][:there], s.edge[t*StripRows:])
		}
	}
}
