//go:build amd64 && !purego

package kernels

// lutTernary adds rows of lookup tables, 16 tokens wide (Vec-LUT §3). A part
// builds the tables of a K tile once and takes all its strips through them, so
// it wants many strips; sums wait in int16 and are widened every lutFlush columns.
var lutTernary = &ternaryKernel{
	name:      "avx2:lut",
	isa:       AVX2,
	form:      func(Packing, int) (actForm, int) { return formLanes, maxLanes },
	tokens:    maxLanes,
	strips:    maxPartStrips,
	perThread: 1,
	least:     4 * maxLanes, // fewer strips do not repay the tables
	mul:       mulTernaryLUT,
}

// lutFlush is the most columns whose products of ±127 add up within int16.
const lutFlush = 256

func mulTernaryLUT(m *ternaryMul, r *ternaryRun, s *ternaryScratch, strips, tokens span) {
	l := m.l
	span := blockBytes * l.g
	act := r.act[(tokens.lo-r.lo)*m.t.stride:]
	n, rows := strips.hi-strips.lo, (strips.hi-strips.lo)*stripRows
	clear(s.acc32[:rows*maxLanes])
	for b0 := 0; b0 < l.blocks; b0 += lutFlush / span {
		b1 := min(b0+lutFlush/span, l.blocks)
		for b := b0; b < b1; {
			steps := 1
			if l.g == 4 && b+2 <= b1 { // the tables of two blocks fit L1 together
				steps = 2
			}
			stage := lutAdd
			switch {
			case b+steps == b1:
				stage = lutWiden
			case b == b0:
				stage = lutSet
			}
			if b == b0 && stage == lutWiden { // one pass is all: it finds nothing in acc16
				clear(s.acc16[:rows*maxLanes])
			}
			w, a := &l.stripData(strips.lo)[b*stripRows*blockBytes], &act[b*span*maxLanes]
			lutPass(s, stage, w, a, l.g, steps, n, l.strip)
			b += steps
		}
	}
	for i := range n {
		m.lutFinish(s, strips.lo+i, s.acc32[i*stripRows*maxLanes:], tokens)
	}
}

// lutStage is where a pass leaves its sums: over those in acc16, added to them,
// or together with them added to acc32.
type lutStage uint8

const (
	lutSet lutStage = iota
	lutAdd
	lutWiden
)

// lutPass builds the tables of one or two blocks and takes n strips through them.
func lutPass(s *ternaryScratch, stage lutStage, w *byte, act *int8, g, steps, n, strip int) {
	build, pass := lutBuild4AVX2, [3]lutPassFunc{lutSet4x1AVX2, lutAdd4x1AVX2, lutWiden4x1AVX2}
	switch {
	case g == 5:
		build, pass = lutBuild5AVX2, [3]lutPassFunc{lutSet5x1AVX2, lutAdd5x1AVX2, lutWiden5x1AVX2}
	case steps == 2:
		pass = [3]lutPassFunc{lutSet4x2AVX2, lutAdd4x2AVX2, lutWiden4x2AVX2}
	}
	build(&s.tables[0], act, steps*blockBytes)
	pass[stage](&s.acc32[0], &s.acc16[0], &s.tables[0], w, n, strip)
}

type lutPassFunc func(acc32 *int32, acc16, tables *int16, w *byte, strips, strip int)

// lutFinish scales the sums of strip i and writes them token by token, by way
// of the edge buffer where y has not room for the whole tile.
func (m *ternaryMul) lutFinish(s *ternaryScratch, i int, acc []int32, tokens span) {
	l := m.l
	rows, n := l.rows(i), tokens.hi-tokens.lo
	y := m.y[tokens.lo*l.w.Rows+i*stripRows:]
	scale := &m.t.scale[tokens.lo]
	if rows == stripRows && n == maxLanes {
		lutFinishAVX2(&y[0], l.w.Rows, &acc[0], scale, &l.scale[i*stripRows])
		return
	}
	lutFinishAVX2(&s.edge[0], stripRows, &acc[0], scale, &l.scale[i*stripRows])
	for t := range n {
		copy(y[t*l.w.Rows:][:rows], s.edge[t*stripRows:])
	}
}
