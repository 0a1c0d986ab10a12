//go:build arm64 && !purego

package ternary

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// sdotKernel multiplies by SDOT, 16 products an instruction: many tokens by panels, few by
// tiles that unpack the trits anew each time.
var sdotKernel = &kernel{
	name:      "neon:sdot",
	isa:       cpu.NEON,
	form:      func(matrix.Packing, int) (actForm, int) { return formQuads, 4 },
	tokens:    panelTokens,
	strips:    16,
	perThread: 8,
	mul: func(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
		from := tokens.lo
		if n := tokens.hi - tokens.lo; n >= sdotPanelFrom {
			from += n &^ 3
		}
		for i := strips.lo; i < strips.hi; i++ {
			if from > tokens.lo {
				m.byPanels(r, s, i, extent{tokens.lo, from}, addQuads)
			}
			m.mulQuads(r, s, i, extent{from, tokens.hi}, quadFunc{sdotKernels[m.l.g][4], StripRows / 4})
		}
	},
}

// sdotPanelFrom is the number of tokens from which panels pay, by count of instructions.
const sdotPanelFrom = 12

// sdotFunc sums all blocks of a tile's tokens and of 64/tokens rows.
type sdotFunc func(sums *int32, w, act *byte, blocks int)

var sdotKernels = map[int][5]sdotFunc{
	5: {1: sdotI1x1, 2: sdotI1x2, 4: sdotI1x4},
	4: {1: sdotI2x1, 2: sdotI2x2, 4: sdotI2x4},
}

// quadFunc sums all blocks of a tile of 4 tokens and a number of rows.
type quadFunc struct {
	sum  sdotFunc
	rows int
}

// mulQuads takes tiles of 4 tokens with four, and what is left with SDOT.
func (m *Task) mulQuads(r *segmentRun, s *scratch, i int, tokens extent, four quadFunc) {
	l := m.l
	kp := l.blocks * acts.BlockBytes * l.g
	w := l.stripData(i)
	for t := tokens.lo; t < tokens.hi; {
		tile, f := 4, four
		for tile > tokens.hi-t {
			tile /= 2
			f = quadFunc{sdotKernels[l.g][tile], StripRows / tile}
		}
		act := (*byte)(unsafe.Pointer(&r.act[(t-r.lo)*kp]))
		for row := 0; row < StripRows; row += f.rows {
			f.sum(&s.acc32[row], &w[row*acts.BlockBytes], act, l.blocks)
		}
		for j := range tile {
			m.finishRow(s, i, t+j, s.acc32[j*StripRows:])
		}
		t += tile
	}
}

// finishRow scales one token's sums of strip i.
func (m *Task) finishRow(s *scratch, i, token int, sums []int32) {
	l := m.l
	y, rows := m.y[token*l.w.Rows+i*StripRows:], l.rows(i)
	if rows == StripRows {
		ternaryFinishNEON(&y[0], &sums[0], m.t.Scale[token], &l.scale[i*StripRows])
		return
	}
	ternaryFinishNEON(&s.edge[0], &sums[0], m.t.Scale[token], &l.scale[i*StripRows])
	copy(y[:rows], s.edge)
}
