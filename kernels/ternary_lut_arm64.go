//go:build arm64 && !purego

package kernels

import "github.com/lutra-lm/lutra/kernels/cpu"

// neonLUT adds rows of lookup tables, 8 tokens wide (Vec-LUT §3). A part builds
// the tables of a block once and takes all its strips through them, so it
// wants many strips; sums wait in int16 and are widened every lutFlush columns.
var neonLUT = &ternaryKernel{
	name:      "neon:lut",
	isa:       cpu.NEON,
	form:      func(Packing, int) (actForm, int) { return formLanes, NEONLanes },
	tokens:    NEONLanes,
	strips:    maxPartStrips,
	perThread: 1,
	mul:       mulTernaryNeonLUT,
}

const (
	lutFlush = 256 // the most columns whose products of ±127 add up within int16
)

func mulTernaryNeonLUT(m *ternaryTask, r *ternaryRun, s *ternaryScratch, strips, tokens span) {
	l := m.l
	cols, base := BlockBytes*l.g, radix(l.w.Packing)
	table := 2 * NEONLanes * 243 // up to the row of all digits 2
	if base == 4 {
		table = 2 * NEONLanes * 171
	}
	act := r.act[(tokens.lo-r.lo)*m.t.stride:]
	const sums = stripRows * NEONLanes
	n := strips.hi - strips.lo
	clear(s.acc16[:n*sums])
	clear(s.acc32[:n*sums])
	flush := lutFlush / cols
	for b := range l.blocks {
		lutBuildNEON(&s.tables[0], &act[b*cols*NEONLanes], l.g, base, BlockBytes)
		for i := range n {
			lutAddNEON(&s.acc16[i*sums], &s.tables[0], &l.stripData(strips.lo + i)[b*stripRows*BlockBytes], table)
		}
		if (b+1)%flush == 0 || b == l.blocks-1 {
			lutWidenNEON(&s.acc32[0], &s.acc16[0], n*stripRows)
		}
	}
	var scale [NEONLanes]float32
	copy(scale[:], m.t.scale[tokens.lo:tokens.hi])
	for i := range n {
		m.lutFinish(s, strips.lo+i, s.acc32[i*sums:], &scale, tokens)
	}
}

// lutFinish scales the sums of strip i and writes them token by token, by way
// of the edge buffer where y has not room for the whole tile.
func (m *ternaryTask) lutFinish(s *ternaryScratch, i int, sums []int32, scale *[NEONLanes]float32, tokens span) {
	l := m.l
	rows, n := l.rows(i), tokens.hi-tokens.lo
	y := m.y[tokens.lo*l.w.Rows+i*stripRows:]
	if rows == stripRows && n == NEONLanes {
		lutFinishNEON(&y[0], l.w.Rows, &sums[0], &scale[0], &l.scale[i*stripRows])
		return
	}
	lutFinishNEON(&s.edge[0], stripRows, &sums[0], &scale[0], &l.scale[i*stripRows])
	for t := range n {
		copy(y[t*l.w.Rows:][:rows], s.edge[t*stripRows:])
	}
}
