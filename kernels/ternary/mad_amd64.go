//go:build amd64 && !purego

package ternary

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// madKernel multiplies digits as bytes, for tiles of up to 4 tokens of I2 and 8 of I1.
var madKernel = &kernel{
	name:      "avx2:mad",
	isa:       cpu.AVX2,
	form:      func(p matrix.Packing, n int) (actForm, int) { return formTiles, madAVX2.width(p, n) },
	strips:    16,
	perThread: 8,
	streams:   true,
	mul:       madAVX2.mul,
	one: func(m *Task, r *segmentRun, s *scratch, strip int, next uintptr) {
		madAVX2.strip(m, r, s, strip, 0, next)
	},
}

// madPass is the bytes of weights that all tiles pass over before the next ones are read.
const madPass = 1 << 17

// madFunc multiplies strips with a tile of tokens, madStream with one token while
// it prefetches as many bytes from next on.
type (
	madFunc   func(w *byte, act *int8, blocks, strips int, negSum *int32, tokens, rows, y *float32, ldy int, acc *int32)
	madStream func(w *byte, act *int8, blocks, strips int, negSum *int32, tokens, rows, y *float32, ldy int, acc *int32, next uintptr)
)

// madKernels holds the kernels of an instruction set for I2 and I1. The i-th tile multiplies i tokens, two at
// least.
type madKernels struct {
	one   [2]madStream
	tiles [2][]madFunc
}

var madAVX2 = madKernels{madStreams[cpu.AVX2], madTiles[cpu.AVX2]}

// width returns the width of tiles for n tokens.
func (k *madKernels) width(p matrix.Packing, n int) int {
	return acts.TileWidth(n, len(k.tiles[tritsPerByte(p)-4])-1)
}

func (k *madKernels) mul(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
	l := m.l
	for lo := strips.lo; lo < strips.hi; {
		hi := min(lo+max(1, madPass/l.strip), strips.hi)
		if l.rows(hi-1) < StripRows { // the last strip goes through the edge buffer
			hi = max(lo+1, hi-1)
		}
		for n := tokens.lo; n < tokens.hi; {
			width := acts.TileTokens(tokens.hi-n, r.width)
			k.tile(m, r, s, extent{lo, hi}, extent{n, n + width})
			n += width
		}
		lo = hi
	}
}

// tile multiplies strips, either whole ones or a single one that is not, with
// one tile of tokens.
func (k *madKernels) tile(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
	l, n, lo := m.l, tokens.hi-tokens.lo, strips.lo
	if n == 1 { // left over by wide tiles, which have brought the weights into the cache
		for strip := lo; strip < strips.hi; strip++ {
			k.strip(m, r, s, strip, tokens.lo, l.stream.At(strip))
		}
		return
	}
	y, ldy := m.y[tokens.lo*l.w.Rows+lo*StripRows:], l.w.Rows
	rows := l.rows(lo)
	if rows < StripRows {
		y, ldy = s.edge, StripRows
	}
	act := r.act[(tokens.lo-r.lo)*l.blocks*acts.BlockBytes*l.g:]
	k.tiles[l.g-4][n](&l.stripData(lo)[0], &act[0], l.blocks, strips.hi-lo, &m.t.NegSum[tokens.lo], &m.t.Scale[tokens.lo],
		&l.scale[lo*StripRows], &y[0], ldy, &s.acc32[0])
	if rows < StripRows {
		for t := range n {
			copy(m.y[(tokens.lo+t)*l.w.Rows+lo*StripRows:][:rows], s.edge[t*StripRows:])
		}
	}
}

// strip multiplies a strip with one token and prefetches as many bytes from
// next on.
func (k *madKernels) strip(m *Task, r *segmentRun, s *scratch, strip, token int, next uintptr) {
	l := m.l
	out, rows := m.y[token*l.w.Rows+strip*StripRows:], l.rows(strip)
	y := out
	if rows < StripRows {
		y = s.edge
	}
	act := r.act[(token-r.lo)*l.blocks*acts.BlockBytes*l.g:]
	k.one[l.g-4](&l.stripData(strip)[0], &act[0], l.blocks, 1, &m.t.NegSum[token], &m.t.Scale[token], &l.scale[strip*StripRows], &y[0], StripRows, &s.acc32[0], next)
	if rows < StripRows {
		copy(out[:rows], y)
	}
}
