//go:build amd64 && !purego

package ternary

import (
	"github.com/klauspost/cpuid/v2"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// hybridKernel multiplies tiles of 64 tokens, half of them by vector lookup and
// half by VPDPBUSD, in one instruction stream: lookups need the load ports and
// multiply-adds the multipliers, so both methods run at once. A part builds the
// tables of a pass of one or two blocks and takes its rows through them. After every
// few rows of lookups it does one block of a 64 × 4 multiply-add tile. Tiles and
// passes need not end together: a call runs to the end of the nearer one, and the
// tile's sums wait in memory. The lookups and multiply-adds of a part end together,
// because each pass does its share of both.
//
// Tokens that fill no tile go to vnniKernel.
var hybridKernel = &kernel{
	name:      "avx512:hybrid",
	isa:       cpu.AVX512,
	form:      func(matrix.Packing, int) (actForm, int) { return formPaired, acts.PairedTokens },
	tokens:    acts.PairedTokens,
	strips:    maxPartStrips,
	perThread: 1,
	least:     8 * acts.PairedTokens, // fewer strips do not repay the tables
	rest:      vnniKernel,
	mul:       mulHybrid,
}

// hybridRows returns how many rows are looked up, in blocks, with one block of
// multiply-adds: 32 lookups, 4 a row and block.
func hybridRows(blocks int) int { return 8 / blocks }

// hybridBlocks is the number of blocks of I2 that a pass takes: two where their tables
// (41 KB of rows) fit L1.
var hybridBlocks = 1 + min(1, cpuid.CPU.Cache.L1D/(48<<10))

type hybridFunc func(acc *int32, w *byte, act *int8, madBlocks int, wide *int32, sums, tables *int16, index *byte, left, strip int)

// hybridKernels holds the kernels of passes of one and two blocks of I2 and of one of
// I1; the second three end the int16 sums.
var hybridKernels = [2][3]hybridFunc{
	{hybrid4x1AVX512, hybrid4x2AVX512, hybrid5x1AVX512},
	{hybridWiden4x1AVX512, hybridWiden4x2AVX512, hybridWiden5x1AVX512},
}

// hybridPass is one pass of lookups: the tables of some blocks from the first on.
type hybridPass struct {
	first, blocks int
	kernel        hybridFunc
}

// pass plans the pass that begins with block b.
func (l *Linear) pass(b int) hybridPass {
	p, kind := hybridPass{first: b, blocks: 1}, 2
	if l.g == 4 {
		p.blocks = min(hybridBlocks, l.blocks-b)
		kind = p.blocks - 1
	}
	stage, end := 0, b+p.blocks
	if end == l.blocks || end%(lutFlush/(acts.BlockBytes*l.g)) == 0 {
		stage = 1
	}
	p.kernel = hybridKernels[stage][kind]
	return p
}

func mulHybrid(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
	l := m.l
	cols := acts.BlockBytes * l.g // of a block
	lanes, quads := acts.PairedTile(r.act[(tokens.lo-r.lo)/acts.PairedTokens*acts.PairedSize(m.t.Stride, l.blocks*cols):], m.t.Stride)
	rows := (strips.hi - strips.lo) * StripRows
	clear(s.acc16[:rows*acts.WideLanes])
	clear(s.acc32[:rows*acts.WideLanes])
	clear(s.tile)
	mad := madCursor{m: m, s: s, quads: quads, strips: strips, tokens: tokens.lo + acts.WideLanes, strip: strips.lo}
	for b := 0; b < l.blocks; {
		p := l.pass(b)
		wideBuild(s.tables, lanes[b*cols*acts.WideLanes:], l.g, p.blocks)
		for row := 0; row < rows; {
			n := min((rows-row)/hybridRows(p.blocks), l.blocks-mad.block)
			mad.run(n, &p, row)
			row += n * hybridRows(p.blocks)
		}
		b += p.blocks
	}
	for i := strips.lo; i < strips.hi; i++ {
		m.wideFinish(s, i, s.acc32[(i-strips.lo)*StripRows*acts.WideLanes:], tokens.lo)
	}
}

// wideBuild builds the tables of one or two blocks.
func wideBuild(tables []int16, act []int8, g, blocks int) {
	if g == 5 {
		wideBuild5AVX512(&tables[0], &act[0], blocks*acts.BlockBytes)
	} else {
		wideBuild4AVX512(&tables[0], &act[0], blocks*acts.BlockBytes)
	}
}

// wideFinish scales the sums of strip i and 32 tokens and writes them token by
// token, by way of the edge buffer where y has not room for all rows.
func (m *Task) wideFinish(s *scratch, i int, acc []int32, token int) {
	rows, scale := m.l.rows(i), &m.l.scale[i*StripRows]
	y := m.y[token*m.l.w.Rows+i*StripRows:]
	if rows == StripRows {
		wideFinishAVX512(&y[0], m.l.w.Rows, &acc[0], &m.t.Scale[token], scale)
		return
	}
	wideFinishAVX512(&s.edge[0], StripRows, &acc[0], &m.t.Scale[token], scale)
	for t := range acts.WideLanes {
		copy(y[t*m.l.w.Rows:][:rows], s.edge[t*StripRows:])
	}
}

// madCursor says how far the multiply-adds of a part have come. They go through
// the blocks of one strip and 4 tokens, then the strip's next tokens, then the
// next strip; the sums of the tile under way are in the scratch memory.
type madCursor struct {
	m                  *Task
	s                  *scratch
	quads              []int8 // [8][block][g][4][4]
	strips             extent
	tokens             int // the first of the 32
	strip, quad, block int // the tile and the next block of it
}

// run does n blocks of the tile with the lookups of a pass, from row on.
func (c *madCursor) run(n int, p *hybridPass, row int) {
	l, s := c.m.l, c.s
	act := &c.quads[(c.quad*l.blocks+c.block)*acts.BlockBytes*l.g*acts.QuadTokens]
	w := &l.stripData(c.strip)[c.block*StripRows*acts.BlockBytes]
	index := &l.stripData(c.strips.lo + row/StripRows)[(p.first*StripRows+row%StripRows)*acts.BlockBytes]
	left := (StripRows - row%StripRows) / hybridRows(p.blocks)
	p.kernel(&s.tile[0], w, act, n, &s.acc32[row*acts.WideLanes], &s.acc16[row*acts.WideLanes], &s.tables[0], index, left, l.strip)
	if c.block += n; c.block == l.blocks {
		c.finish()
	}
}

// finish writes the tile's products and goes on to the next tile.
func (c *madCursor) finish() {
	m, s := c.m, c.s
	l, token := m.l, c.tokens+c.quad*acts.QuadTokens
	rows, scale := l.rows(c.strip), &l.scale[c.strip*StripRows]
	y := m.y[token*l.w.Rows+c.strip*StripRows:]
	if rows == StripRows {
		hybridFinishAVX512(&y[0], l.w.Rows, &s.tile[0], &m.t.NegSum[token], &m.t.Scale[token], scale)
	} else {
		hybridFinishAVX512(&s.edge[0], StripRows, &s.tile[0], &m.t.NegSum[token], &m.t.Scale[token], scale)
		for t := range acts.QuadTokens {
			copy(y[t*l.w.Rows:][:rows], s.edge[t*StripRows:])
		}
	}
	clear(s.tile)
	c.block = 0
	if c.quad++; c.quad*acts.QuadTokens == acts.WideLanes {
		c.quad = 0
		c.strip++
	}
}
