//go:build arm64 && !purego

package ternary

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// lutKernel adds rows of lookup tables, 8 tokens wide (Vec-LUT §3). A part builds
// the tables of a block once and takes all its strips through them, so it
// wants many strips; sums wait in int16 and are widened every lutFlush columns.
var lutKernel = &kernel{
	name:      "neon:lut",
	isa:       cpu.NEON,
	form:      func(matrix.Packing, int) (actForm, int) { return formLanes, acts.NEONLanes },
	tokens:    acts.NEONLanes,
	strips:    maxPartStrips,
	perThread: 1,
	mul:       mulTernaryNeonLUT,
}

const (
	lutFlush = 256 // the most columns whose products of ±127 add up within int16
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
	clear(s.acc16[:n*sums])
	clear(s.acc32[:n*sums])
	flush := lutFlush / cols
	for b := range l.blocks {
		lutBuildNEON(&s.tables[0], &act[b*cols*acts.NEONLanes], l.g, base, acts.BlockBytes)
		for i := range n {
			lutAddNEON(&s.acc16[i*sums], &s.tables[0], &l.stripData(strips.lo + i)[b*StripRows*acts.BlockBytes], table)
		}
		if (b+1)%flush == 0 || b == l.blocks-1 {
			lutWidenNEON(&s.acc32[0], &s.acc16[0], n*StripRows)
		}
	}
	var scale [acts.NEONLanes]float32
	copy(scale[:], m.t.Scale[tokens.lo:tokens.hi])
	for i := range n {
		m.lutFinish(s, strips.lo+i, s.acc32[i*sums:], &scale, tokens)
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
