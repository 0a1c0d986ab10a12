//go:build amd64 && !purego

package kernels

// madTernary multiplies digits in 8-bit lanes, for tiles of up to 8 tokens.
var madTernary = &ternaryKernel{
	name:      "avx2:mad",
	isa:       AVX2,
	form:      func(_ Packing, n int) (actForm, int) { return formTiles, tileWidth(n, madTokens) },
	strips:    16,
	perThread: 8,
	mul:       mulTernaryMAD,
	one: func(m *ternaryMul, r *ternaryRun, s *ternaryScratch, strip int, next uintptr) {
		m.madStrip(r, s, strip, 0, next)
	},
}

const (
	madTokens = 8       // of the widest tile
	madPass   = 1 << 17 // bytes of weights that all tiles pass over before the next ones are read
)

type madFunc func(w *byte, act *int8, blocks, strips int, negSum *int32, tokens, rows, y *float32, ldy int, acc *int32)

// madTiles are the kernels of tiles of 2 to 8 tokens.
var (
	madTiles4 = [madTokens + 1]madFunc{2: mad4x2AVX2, mad4x3AVX2, mad4x4AVX2, mad4x5AVX2, mad4x6AVX2, mad4x7AVX2, mad4x8AVX2}
	madTiles5 = [madTokens + 1]madFunc{2: mad5x2AVX2, mad5x3AVX2, mad5x4AVX2, mad5x5AVX2, mad5x6AVX2, mad5x7AVX2, mad5x8AVX2}
)

func mulTernaryMAD(m *ternaryMul, r *ternaryRun, s *ternaryScratch, strips, tokens span) {
	l := m.l
	for lo := strips.lo; lo < strips.hi; {
		hi := min(lo+max(1, madPass/l.strip), strips.hi)
		if l.rows(hi-1) < stripRows { // the last strip goes through the edge buffer
			hi = max(lo+1, hi-1)
		}
		for n := tokens.lo; n < tokens.hi; n += r.width {
			m.madTile(r, s, span{lo, hi}, span{n, min(n+r.width, tokens.hi)})
		}
		lo = hi
	}
}

// madTile multiplies strips, either whole ones or a single one that is not,
// with one tile of tokens.
func (m *ternaryMul) madTile(r *ternaryRun, s *ternaryScratch, strips, tokens span) {
	l, n, lo := m.l, tokens.hi-tokens.lo, strips.lo
	if n == 1 { // left over by wide tiles, which have brought the weights near
		for strip := lo; strip < strips.hi; strip++ {
			m.madStrip(r, s, strip, tokens.lo, l.stream.at(strip))
		}
		return
	}
	y, ldy := m.y[tokens.lo*l.w.Rows+lo*stripRows:], l.w.Rows
	rows := l.rows(lo)
	if rows < stripRows {
		y, ldy = s.edge, stripRows
	}
	f := madTiles4[n]
	if l.g == 5 {
		f = madTiles5[n]
	}
	act := r.act[(tokens.lo-r.lo)*l.blocks*blockBytes*l.g:]
	f(&l.stripData(lo)[0], &act[0], l.blocks, strips.hi-lo, &m.t.negSum[tokens.lo], &m.t.scale[tokens.lo],
		&l.scale[lo*stripRows], &y[0], ldy, &s.acc32[0])
	if rows < stripRows {
		for t := range n {
			copy(m.y[(tokens.lo+t)*l.w.Rows+lo*stripRows:][:rows], s.edge[t*stripRows:])
		}
	}
}

// madStrip multiplies a strip with one token and prefetches as many bytes from
// next on.
func (m *ternaryMul) madStrip(r *ternaryRun, s *ternaryScratch, strip, token int, next uintptr) {
	l, f := m.l, mad4x1AVX2
	if l.g == 5 {
		f = mad5x1AVX2
	}
	out, rows := m.y[token*l.w.Rows+strip*stripRows:], l.rows(strip)
	y := out
	if rows < stripRows {
		y = s.edge
	}
	act := r.act[(token-r.lo)*l.blocks*blockBytes*l.g:]
	f(&l.stripData(strip)[0], &act[0], l.blocks, 1, &m.t.negSum[token], &m.t.scale[token], &l.scale[strip*stripRows], &y[0], stripRows, &s.acc32[0], next)
	if rows < stripRows {
		copy(out[:rows], y)
	}
}
