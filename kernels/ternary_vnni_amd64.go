//go:build amd64 && !purego

package kernels

// vnniTernary multiplies digits with VPDPBUSD: 64 rows × 4 tokens in registers.
var vnniTernary = &ternaryKernel{
	name:      "avx512:vnni",
	isa:       AVX512,
	form:      func(Packing, int) (actForm, int) { return formQuads, madWidth },
	strips:    16,
	perThread: 8,
	mul:       mulTernaryVNNI,
}

func mulTernaryVNNI(m *ternaryMul, r *ternaryRun, s *ternaryScratch, strips, tokens span) {
	l := m.l
	kp := l.blocks * blockBytes * l.g
	for i := strips.lo; i < strips.hi; i++ {
		w, rows := l.stripData(i), l.rows(i)
		for n, width := tokens.lo, r.width; n < tokens.hi; n += width {
			for width > tokens.hi-n {
				width /= 2
			}
			act := r.act[(n-r.lo)*kp:]
			y, ldy := m.y[n*l.w.Rows+i*stripRows:], l.w.Rows
			if rows < stripRows {
				y, ldy = s.edge, stripRows
			}
			vnniTile(w, act, l.g, l.blocks, width, &m.t.negSum[n], &m.t.scale[n], l.scale[i*stripRows:], y, ldy)
			if rows < stripRows {
				for t := range width {
					copy(m.y[(n+t)*l.w.Rows+i*stripRows:][:rows], s.edge[t*stripRows:])
				}
			}
		}
	}
}

// vnniTile multiplies a strip with a tile of tokens.
func vnniTile(w []byte, act []int8, g, blocks, width int, negSum *int32, tokens *float32, rows, y []float32, ldy int) {
	switch {
	case g == 4 && width == 4:
		vnni4x64x4AVX512(&w[0], &act[0], blocks, negSum, tokens, &rows[0], &y[0], ldy)
	case g == 4 && width == 2:
		vnni4x64x2AVX512(&w[0], &act[0], blocks, negSum, tokens, &rows[0], &y[0], ldy)
	case g == 4:
		vnni4x64x1AVX512(&w[0], &act[0], blocks, negSum, tokens, &rows[0], &y[0], ldy)
	case width == 4:
		vnni5x64x4AVX512(&w[0], &act[0], blocks, negSum, tokens, &rows[0], &y[0], ldy)
	case width == 2:
		vnni5x64x2AVX512(&w[0], &act[0], blocks, negSum, tokens, &rows[0], &y[0], ldy)
	default:
		vnni5x64x1AVX512(&w[0], &act[0], blocks, negSum, tokens, &rows[0], &y[0], ldy)
	}
}
