//go:build arm64 && !purego

package ternary

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// lutKernel adds rows of lookup tables, 8 tokens wide (Vec-LUT §3), or two of them for
// 16 tokens, which share the taking apart of weights. A part builds the tables of a block
// once and takes all its strips through them, so it wants many strips; sums wait in int16
// and are widened every lutFlush columns.
var lutKernel = &kernel{
	name:      "neon:lut",
	isa:       cpu.NEON,
	form:      func(matrix.Packing, int) (actForm, int) { return formLanes, acts.NEONLanes },
	tokens:    2 * acts.NEONLanes,
	strips:    maxPartStrips,
	perThread: 1,
	mul:       mulTernaryNeonLUT,
}

const (
	lutFlush = 256       // the most columns whose products of ±127 add up within int16
	lutMore  = 15616 / 2 // from the tables of 8 tokens to the tables of 8 more, which lutAdd2NEON knows
)

func mulTernaryNeonLUT(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
	l := m.l
	cols, base := acts.BlockBytes*l.g, radix(l.w.Packing)
	table := 2 * acts.NEONLanes * 243 // up to the row of all digits 2
	if base == 4 {
		table = 2 * acts.NEONLanes * 171
	}
	act := r.act[(tokens.lo-r.lo)*m.t.Stride:]
	const sums = StripRows * acts.NEONLanes
	n := strips.hi - strips.lo
	tiles := (tokens.hi - tokens.lo + acts.NEONLanes - 1) / acts.NEONLanes
	clear(s.acc16[:tiles*n*sums])
	clear(s.acc32[:tiles*n*sums])
	flush := lutFlush / cols
	for b := range l.blocks {
		for t := range tiles {
			lutBuildNEON(&s.tables[t*lutMore], &act[(t*m.t.Stride+b*cols)*acts.NEONLanes], l.g, base, acts.BlockBytes)
		}
		for i := range n {
			w := &l.stripData(strips.lo + i)[b*StripRows*acts.BlockBytes]
			if tiles == 2 {
				lutAdd2NEON(&s.acc16[i*sums], &s.acc16[(n+i)*sums], &s.tables[0], w, table)
			} else {
				lutAddNEON(&s.acc16[i*sums], &s.tables[0], w, table)
			}
		}
		if (b+1)%flush == 0 || b == l.blocks-1 {
			lutWidenNEON(&s.acc32[0], &s.acc16[0], tiles*n*StripRows)
		}
	}
	for t := range tiles {
		lo := tokens.lo + t*acts.NEONLanes
		of := extent{lo, min(lo+acts.NEONLanes, tokens.hi)}
		var scale [acts.NEONLanes]float32
		copy(scale[:], m.t.Scale[of.lo:of.hi])
		for i := range n {
			m.lutFinish(s, strips.lo+i, s.acc32[(t*n+i)*sums:], &scale, of)
		}
	}
}

// lutFinish scales the sums of strip i and writes them token by token, by way
// of the edge buffer where y has not room for the whole tile.
func (m *Task) lutFinish(s *scratch, i int, sums []int32, scale *[acts.NEONLanes]float32, tokens extent) {
	l := m.l
	rows, n := l.rows(i), tokens.hi-tokens.lo
	y := m.y[tokens.lo*l.w.Rows+i*StripRows:]
	if rows == StripRows && n == acts.NEONLanes {
		lutFinishNEON(&y[0], l.w.Rows, &sums[0], &scale[0], &l.scale[i*StripRows])
		return
	}
	lutFinishNEON(&s.edge[0], StripRows, &sums[0], &scale[0], &l.scale[i*StripRows])
	for t := range n {
		copy(y[t*l.w.Rows:][:rows], s.edge[t*StripRows:])
	}
}
