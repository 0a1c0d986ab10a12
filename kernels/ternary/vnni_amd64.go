//go:build amd64 && !purego

package ternary

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// vnniKernel multiplies digits with VPDPBUSD: 64 rows × 4 tokens in registers.
var vnniKernel = &kernel{
	name:      "avx512:vnni",
	isa:       cpu.AVX512,
	form:      func(_ matrix.Packing, n int) (actForm, int) { return formTiles, cpu.TileWidth(n, acts.QuadTokens) },
	strips:    16,
	perThread: 8,
	mul:       mulVNNI,
}

type vnniFunc func(w *byte, act *int8, blocks int, negSum *int32, tokens, rows, y *float32, ldy int)

func mulVNNI(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
	l := m.l
	kp := l.blocks * acts.BlockBytes * l.g
	for i := strips.lo; i < strips.hi; i++ {
		w, rows := l.stripData(i), l.rows(i)
		for n := tokens.lo; n < tokens.hi; n += r.width {
			width := min(r.width, tokens.hi-n)
			act := &r.act[(n-r.lo)*kp]
			y, ldy := m.y[n*l.w.Rows+i*StripRows:], l.w.Rows
			if rows < StripRows {
				y, ldy = s.edge, StripRows
			}
			vnniTiles[l.g-4][width](&w[0], act, l.blocks, &m.t.NegSum[n], &m.t.Scale[n], &l.scale[i*StripRows], &y[0], ldy)
			if rows < StripRows {
				for t := range width {
					copy(m.y[(n+t)*l.w.Rows+i*StripRows:][:rows], s.edge[t*StripRows:])
				}
			}
		}
	}
}
