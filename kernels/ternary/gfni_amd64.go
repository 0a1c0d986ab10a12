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
	form: func(_ matrix.Packing, n int) (actForm, int) {
		if n == 5 { // 1.3 to 1.6 times as fast as tiles of three and two
			return formTiles, n
		}
		return formTiles, acts.TileWidth(n, gfniMost)
	},
	strips:    16,
	perThread: 8,
	mul:       mulGFNI,
}

const (
	gfniFew  = 4  // tokens of the widest tile of 64 rows
	gfniRows = 32 // of wider tiles, and of a panel
	gfniMost = 12 // tokens of the widest tile
)

// gfniFunc is a tile that keeps what it unpacks in a panel [blocks][g][32][4], which a vnniFunc of gfniPanels
// multiplies with other tokens. A nil panel keeps nothing.
type gfniFunc func(w *byte, act *int8, blocks int, negSum *int32, tokens, rows, y *float32, ldy int, panel *byte)

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
	var panel *byte
	if keep {
		rows = gfniRows
		s.panel = cpu.Grow(s.panel, size)
		panel = &s.panel[0]
	}
	for lo := strips.lo * StripRows; lo < min(strips.hi*StripRows, l.w.Rows); lo += rows {
		for n := tokens.lo; n < tokens.hi; {
			width := acts.TileTokens(tokens.hi-n, r.width)
			t := extent{n, n + width}
			switch {
			case keep && n > tokens.lo:
				m.gfniTile(r, s, lo, t, gfniRows, func(w *byte, act *int8, negSum *int32, scale, of, y *float32, ldy int) {
					gfniPanels[width](panel, act, l.blocks*l.g, negSum, scale, of, y, ldy)
				})
			case width <= gfniFew:
				m.gfniTile(r, s, lo, t, StripRows, func(w *byte, act *int8, negSum *int32, scale, of, y *float32, ldy int) {
					gfniTall(l.g, width)(w, act, l.blocks, negSum, scale, of, y, ldy)
				})
			default:
				for row := lo; row < min(lo+rows, l.w.Rows); row += gfniRows {
					m.gfniTile(r, s, row, t, gfniRows, func(w *byte, act *int8, negSum *int32, scale, of, y *float32, ldy int) {
						gfniTiles[l.g-4][width](w, act, l.blocks, negSum, scale, of, y, ldy, panel)
					})
				}
			}
			n += width
		}
	}
}

// gfniTile multiplies rows, from row on, with a tile of tokens.
func (m *Task) gfniTile(r *segmentRun, s *scratch, row int, tokens extent, rows int, multiply func(w *byte, act *int8, negSum *int32, scale, of, y *float32, ldy int)) {
	l, n := m.l, tokens.lo
	w := &l.stripData(row / StripRows)[row%StripRows*acts.BlockBytes]
	act := &r.act[(n-r.lo)*l.blocks*acts.BlockBytes*l.g]
	there := min(rows, l.w.Rows-row)
	y, ldy := m.y[n*l.w.Rows+row:], l.w.Rows
	if there < rows {
		y, ldy = s.edge, StripRows
	}
	multiply(w, act, &m.t.NegSum[n], &m.t.Scale[n], &l.scale[row], &y[0], ldy)
	if there < rows {
		for t := range tokens.hi - n {
			copy(m.y[(n+t)*l.w.Rows+row:][:there], s.edge[t*StripRows:])
		}
	}
}
