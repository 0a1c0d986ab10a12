//go:build amd64 && !purego

package kernels

// madTernary multiplies digits in 8-bit lanes. One token streams the weights
// through registers; more share the digits of a few blocks, unpacked into L1.
var madTernary = &ternaryKernel{
	name:      "avx2:mad",
	isa:       AVX2,
	form:      func(Packing, int) (actForm, int) { return formQuads, 4 },
	strips:    16,
	perThread: 8,
	mul:       mulTernaryMAD,
}

// madTokens is how many tokens share a strip's unpacked digits.
const madTokens = 32

func mulTernaryMAD(m *ternaryMul, r *ternaryRun, s *ternaryScratch, strips, tokens span) {
	for i := strips.lo; i < strips.hi; i++ {
		for n := tokens.lo; n < tokens.hi; n += madTokens {
			m.madStrip(r, s, i, span{n, min(n+madTokens, tokens.hi)})
		}
	}
}

// madStrip multiplies strip i with at most madTokens tokens.
func (m *ternaryMul) madStrip(r *ternaryRun, s *ternaryScratch, i int, tokens span) {
	l, n := m.l, tokens.hi-tokens.lo
	acc := s.acc32[:n*stripRows]
	for t := range n {
		row := acc[t*stripRows:][:stripRows]
		for j := range row {
			row[j] = m.t.negSum[tokens.lo+t]
		}
	}
	w, kp := l.stripData(i), l.blocks*blockBytes*l.g
	act := r.act[(tokens.lo-r.lo)*kp:]
	if n == 1 {
		if l.g == 5 {
			madStream5AVX2(&w[0], &act[0], l.blocks, &acc[0])
		} else {
			madStream4AVX2(&w[0], &act[0], l.blocks, &acc[0])
		}
	} else {
		chunk := maxPlanes / l.g // blocks: 16 of I2, 12 of I1
		for b := 0; b < l.blocks; b += chunk {
			blocks := min(chunk, l.blocks-b)
			wb := &w[b*stripRows*blockBytes]
			if l.g == 5 {
				madUnpack5AVX2(&s.planes[0], wb, blocks)
			} else {
				madUnpack4AVX2(&s.planes[0], wb, blocks)
			}
			for t := 0; t < n; {
				a, out, count := t*kp, &acc[t*stripRows], blocks*l.g
				switch width := min(4, n-t); {
				case width == 4:
					madTile4AVX2(&s.planes[0], &act[a+b*blockBytes*l.g*4], count, out)
					t += 4
				case width >= 2:
					madTile2AVX2(&s.planes[0], &act[a+b*blockBytes*l.g*2], count, out)
					t += 2
				default:
					madTile1AVX2(&s.planes[0], &act[a+b*blockBytes*l.g], count, out)
					t++
				}
			}
		}
	}
	rows := l.rows(i)
	for t := range n {
		token := tokens.lo + t
		y := m.y[token*l.w.Rows+i*stripRows:]
		if rows == stripRows {
			madFinishAVX2(&y[0], &acc[t*stripRows], m.t.scale[token], &l.scale[i*stripRows])
			continue
		}
		madFinishAVX2(&s.edge[0], &acc[t*stripRows], m.t.scale[token], &l.scale[i*stripRows])
		copy(y[:rows], s.edge)
	}
}
