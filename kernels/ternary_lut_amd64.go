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
	mul:       mulTernaryLUT,
}

// lutFlush is the most columns whose products of ±127 add up within int16.
const lutFlush = 256

func mulTernaryLUT(m *ternaryMul, r *ternaryRun, s *ternaryScratch, strips, tokens span) {
	l := m.l
	span := blockBytes * l.g
	act := r.act[(tokens.lo-r.lo)*m.t.stride:]
	n, rows := strips.hi-strips.lo, (strips.hi-strips.lo)*stripRows
	for b0 := 0; b0 < l.blocks; b0 += lutFlush / span {
		b1 := min(b0+lutFlush/span, l.blocks)
		for b := b0; b < b1; {
			w, a := &l.stripData(strips.lo)[b*stripRows*blockBytes], &act[b*span*maxLanes]
			b += lutStep(s, w, a, l.g, b1-b, n, l.strip, b == b0)
		}
		if b0 == 0 {
			lutFlushFirstAVX2(&s.acc32[0], &s.acc16[0], rows)
		} else {
			lutFlushAVX2(&s.acc32[0], &s.acc16[0], rows)
		}
	}
	for i := range n {
		m.lutFinish(s, strips.lo+i, s.acc32[i*stripRows*maxLanes:], tokens)
	}
}

// lutStep takes n strips through the next block, or the next two where their
// tables fit L1 together, and tells how many it was.
func lutStep(s *ternaryScratch, w *byte, act *int8, g, blocks, n, strip int, first bool) int {
	tables, acc := &s.tables[0], &s.acc16[0]
	switch {
	case g == 5:
		lutBuild5AVX2(tables, act, 4)
		if first {
			lutFirst5x1AVX2(acc, tables, w, n, strip)
		} else {
			lutLookup5x1AVX2(acc, tables, w, n, strip)
		}
		return 1
	case blocks == 1:
		lutBuild4AVX2(tables, act, 4)
		if first {
			lutFirst4x1AVX2(acc, tables, w, n, strip)
		} else {
			lutLookup4x1AVX2(acc, tables, w, n, strip)
		}
		return 1
	}
	lutBuild4AVX2(tables, act, 8)
	if first {
		lutFirst4x2AVX2(acc, tables, w, n, strip)
	} else {
		lutLookup4x2AVX2(acc, tables, w, n, strip)
	}
	return 2
}

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
