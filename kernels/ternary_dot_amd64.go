//go:build amd64 && !purego

package kernels

// dotTernary multiplies digits with VPDPBUSD of 256 bits, for tiles of up to 8 tokens.
var dotTernary = &ternaryKernel{
	name:      "avxvnni:mad",
	isa:       AVXVNNI,
	form:      func(p Packing, n int) (actForm, int) { return formTiles, dotWidth(p, n) },
	strips:    16,
	perThread: 8,
	mul:       mulTernaryDot,
	one: func(m *ternaryMul, r *ternaryRun, s *ternaryScratch, strip int, next uintptr) {
		m.dotStrip(r, s, strip, 0, next)
	},
}

// dotTiles are the kernels of tiles of 2 to 8 tokens, for I2 and I1.
var dotTiles = [2][]madFunc{
	{2: dot4x2AVXVNNI, 3: dot4x3AVXVNNI, 4: dot4x4AVXVNNI, 5: dot4x5AVXVNNI, 6: dot4x6AVXVNNI, 7: dot4x7AVXVNNI},
	{2: dot5x2AVXVNNI, 3: dot5x3AVXVNNI, 4: dot5x4AVXVNNI, 5: dot5x5AVXVNNI, 6: dot5x6AVXVNNI, 7: dot5x7AVXVNNI, 8: dot5x8AVXVNNI},
}

// dotWidth is the width of tiles for n tokens. Eight of I2 are five and three,
// for two tiles of four wait longer (_gen/ternary_dot.go counts the cycles).
func dotWidth(p Packing, n int) int {
	if p == I2 && n == 8 {
		return 5
	}
	return tileWidth(n, len(dotTiles[tritsPerByte(p)-4])-1)
}

func mulTernaryDot(m *ternaryMul, r *ternaryRun, s *ternaryScratch, strips, tokens span) {
	l := m.l
	for lo := strips.lo; lo < strips.hi; {
		hi := min(lo+max(1, madPass/l.strip), strips.hi)
		if l.rows(hi-1) < stripRows { // the last strip goes through the edge buffer
			hi = max(lo+1, hi-1)
		}
		for n := tokens.lo; n < tokens.hi; n += r.width {
			m.dotTile(r, s, span{lo, hi}, span{n, min(n+r.width, tokens.hi)})
		}
		lo = hi
	}
}

// dotTile multiplies strips, either whole ones or a single one that is not,
// with one tile of tokens.
func (m *ternaryMul) dotTile(r *ternaryRun, s *ternaryScratch, strips, tokens span) {
	l, n, lo := m.l, tokens.hi-tokens.lo, strips.lo
	if n == 1 { // left over by wide tiles, which have brought the weights near
		for strip := lo; strip < strips.hi; strip++ {
			m.dotStrip(r, s, strip, tokens.lo, l.stream.at(strip))
		}
		return
	}
	y, ldy := m.y[tokens.lo*l.w.Rows+lo*stripRows:], l.w.Rows
	rows := l.rows(lo)
	if rows < stripRows {
		y, ldy = s.edge, stripRows
	}
	act := r.act[(tokens.lo-r.lo)*l.blocks*blockBytes*l.g:]
	dotTiles[l.g-4][n](&l.stripData(lo)[0], &act[0], l.blocks, strips.hi-lo, &m.t.negSum[tokens.lo], &m.t.scale[tokens.lo],
		&l.scale[lo*stripRows], &y[0], ldy, &s.acc32[0])
	if rows < stripRows {
		for t := range n {
			copy(m.y[(tokens.lo+t)*l.w.Rows+lo*stripRows:][:rows], s.edge[t*stripRows:])
		}
	}
}

// dotStrip multiplies a strip with one token and prefetches as many bytes from
// next on.
func (m *ternaryMul) dotStrip(r *ternaryRun, s *ternaryScratch, strip, token int, next uintptr) {
	l, f := m.l, dot4x1AVXVNNI
	if l.g == 5 {
		f = dot5x1AVXVNNI
	}
	out, rows := m.y[token*l.w.Rows+strip*stripRows:], l.rows(strip)
	y := out
	if rows < stripRows {
		y = s.edge
	}
	act := r.act[(token-r.lo)*l.blocks*blockBytes*l.g:]
	f(&l.stripData(strip)[0], &act[0], l.blocks, 1, &m.t.negSum[token], &m.t.scale[token], &l.scale[strip*stripRows], &y[0], l.w.Rows, &s.acc32[0], next)
	if rows < stripRows {
		copy(out[:rows], s.edge)
	}
}
