//go:build amd64 && !purego

package ternary

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// amxKernel multiplies digits with tiles of AMX.
var amxKernel = &kernel{
	name: "avx512:amx",
	isa:  cpu.AVX512,
	form: func(p matrix.Packing, _ int) (actForm, int) {
		if p == matrix.I2 {
			return formRows, 1
		}
		return formQuads, 1 // rows in the order of I1's digits
	},
	strips:    16,
	perThread: 8,
	mul:       mulAMX,
}

const (
	amxTokens = 16 // of a tile, and rows of a band
	amxWidth  = 64 // bytes of a tile's rows
	amxBands  = StripRows / amxTokens
	// amxActBytes are activations that stay in L2 while strips pass.
	amxActBytes = 1 << 20
)

// amxFunc multiplies some bands with some tokens.
type amxFunc func(w *byte, act *int8, stride, blocks, n int, sizes, tiles *byte, sums, negSum *int32, tokens, rows, y *float32, ldy int)

// amxSizes are the sizes of tiles by number of tokens: tiles of 16 tokens multiply four bands, two of them two.
var amxSizes = func() (sizes [2*amxTokens + 1]cpu.TileSizes) {
	for n := range sizes {
		tokens := 1 + min(1, n/(amxTokens+1))
		bands, s := amxBands/tokens, &sizes[n]
		for t := range tokens {
			rows := max(1, min(n-amxTokens*t, amxTokens))
			for r := range bands {
				s.Set(t*bands+r, rows, amxWidth)
			}
			s.Set(amxBands+t, rows, amxWidth)
		}
		for r := range 2 {
			s.Set(amxBands+tokens+r, amxTokens, amxWidth)
		}
	}
	return sizes
}()

func mulAMX(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
	stride := m.t.Stride
	if r.form == formQuads {
		stride = m.l.blocks * acts.BlockBytes * m.l.g
	}
	most := max(amxActBytes/stride/(2*amxTokens), 1) * 2 * amxTokens
	for lo := tokens.lo; lo < tokens.hi; lo += most {
		for i := strips.lo; i < strips.hi; i++ {
			for n := lo; n < min(lo+most, tokens.hi); n += 2 * amxTokens {
				m.amxTile(r, s, i, extent{n, min(n+2*amxTokens, tokens.hi)}, stride)
			}
		}
	}
}

// amxTile multiplies strip i with up to 32 tokens.
func (m *Task) amxTile(r *segmentRun, s *scratch, i int, tokens extent, stride int) {
	l, n := m.l, tokens.hi-tokens.lo
	many := 1 + min(1, n/(amxTokens+1))
	for row := 0; row < l.rows(i); row += StripRows / many {
		there := min(StripRows/many, l.rows(i)-row)
		y, ldy := m.y[tokens.lo*l.w.Rows+i*StripRows+row:], l.w.Rows
		if there < StripRows/many {
			y, ldy = s.edge, StripRows
		}
		amxTiles[l.g-4][many](&l.stripData(i)[row*acts.BlockBytes], &r.act[(tokens.lo-r.lo)*stride], stride, l.blocks, n,
			&amxSizes[n][0], &s.digits[0], &s.acc32[0], &m.t.NegSum[tokens.lo], &m.t.Scale[tokens.lo], &l.scale[i*StripRows+row], &y[0], ldy)
		if there < StripRows/many {
			for t := range n {
				copy(m.y[(tokens.lo+t)*l.w.Rows+i*StripRows+row:][:there], s.edge[t*StripRows:])
			}
		}
	}
}
