//go:build amd64 && !purego

package ternary

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// lutKernel adds rows of lookup tables, 16 tokens wide (Vec-LUT §3). A part builds
// the tables of a K tile once and takes all its strips through them: the more strips,
// the better. Sums are int16 and widened every lutFlush columns.
var lutKernel = &kernel{
	name:      "avx2:lut",
	isa:       cpu.AVX2,
	form:      func(matrix.Packing, int) (actForm, int) { return formLanes, acts.LaneTokens },
	tokens:    acts.LaneTokens,
	strips:    maxPartStrips,
	perThread: 1,
	least:     4 * acts.LaneTokens, // fewer strips do not repay the tables
	build:     lutBuildRows,
	mul:       mulLUT,
	shared:    &sharedKernel{chunk: func(p matrix.Packing) int { return lutFlush / (acts.BlockBytes * tritsPerByte(p)) / chunksAtOnce }, add: addLUT, merge: mergeLUT},
}

// lutBuildRows returns about 1.4 times the rows of a table: one is stored in a cycle,
// a row of weights takes 0.7 for each table.
func lutBuildRows(p matrix.Packing) int {
	if p == matrix.I1 {
		return 220
	}
	return 110
}

// lutFlush is the most columns whose products of ±127 add up within int16.
const lutFlush = 256

func mulLUT(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
	l := m.l
	flush := lutFlush / (acts.BlockBytes * l.g)
	for b := 0; b < l.blocks; b += flush {
		end := min(b+flush, l.blocks)
		addLUT(m, r, s, strips, tokens, extent{b, end}, b == 0, end == l.blocks)
	}
}

// addLUT adds the products of blocks of lutFlush columns at most to the
// sums in acc32, or sets these to them if they are the first, and writes y if
// they are the last.
func addLUT(m *Task, r *segmentRun, s *scratch, strips, tokens, blocks extent, first, last bool) {
	l := m.l
	cols := acts.BlockBytes * l.g // of a block
	act := r.act[(tokens.lo-r.lo)*m.t.Stride:]
	n := strips.hi - strips.lo
	for b := blocks.lo; b < blocks.hi; {
		take := 1
		if l.g == 4 && b+2 <= blocks.hi { // the tables of two blocks fit L1 together
			take = 2
		}
		stage := lutAdd
		switch {
		case b+take == blocks.hi && first:
			stage = lutBegin
		case b+take == blocks.hi:
			stage = lutWiden
		case b == blocks.lo:
			stage = lutSet
		}
		if b == blocks.lo && b+take == blocks.hi { // the only pass: acc16 holds nothing yet
			clear(s.acc16[:n*StripRows*acts.LaneTokens])
		}
		build, pass := lutKernels(l.g, take, stage)
		w := &l.stripData(strips.lo)[b*StripRows*acts.BlockBytes]
		build(&s.tables[0], &act[b*cols*acts.LaneTokens], take*acts.BlockBytes, w)
		if b += take; b < blocks.hi || !last {
			pass(&s.acc32[0], &s.acc16[0], &s.tables[0], w, n, l.strip)
			continue
		}
		for i := range n { // the last pass: what a strip ends with is still in L1 when it is written
			at := i * StripRows * acts.LaneTokens
			sums := s.acc32[at:]
			if stage == lutBegin {
				sums = s.acc32 // the only ones
			}
			w := &l.stripData(strips.lo + i)[(b-take)*StripRows*acts.BlockBytes]
			pass(&sums[0], &s.acc16[at], &s.tables[0], w, 1, l.strip)
			m.lutFinish(s, strips.lo+i, sums, tokens)
		}
	}
}

// mergeLUT writes y from the sums of two workers.
func mergeLUT(m *Task, s, other *scratch, strips, tokens extent) {
	for i := range strips.hi - strips.lo {
		at := i * StripRows * acts.LaneTokens
		lutMergeAVX2(&s.acc32[at], &other.acc32[at])
		m.lutFinish(s, strips.lo+i, s.acc32[at:], tokens)
	}
}

// lutStage says where a pass leaves its sums: over those in acc16, added to them,
// or together with them over those in acc32 or added to them.
type lutStage uint8

const (
	lutSet lutStage = iota
	lutAdd
	lutBegin
	lutWiden
)

type (
	lutBuildFunc func(tables *int16, act *int8, groups int, w *byte)
	lutPassFunc  func(acc32 *int32, acc16, tables *int16, w *byte, strips, strip int)
)

// lutKernels returns the kernels that build the tables of one or two blocks and take
// strips through them.
func lutKernels(g, blocks int, stage lutStage) (lutBuildFunc, lutPassFunc) {
	switch {
	case g == 5:
		return lutBuild5AVX2, [...]lutPassFunc{lutSet5x1AVX2, lutAdd5x1AVX2, lutBegin5x1AVX2, lutWiden5x1AVX2}[stage]
	case blocks == 2:
		return lutBuild4AVX2, [...]lutPassFunc{lutSet4x2AVX2, lutAdd4x2AVX2, lutBegin4x2AVX2, lutWiden4x2AVX2}[stage]
	}
	return lutBuild4AVX2, [...]lutPassFunc{lutSet4x1AVX2, lutAdd4x1AVX2, lutBegin4x1AVX2, lutWiden4x1AVX2}[stage]
}

// lutFinish scales the sums of strip i and writes them token by token, by way
// of the edge buffer where y has not room for the whole tile.
func (m *Task) lutFinish(s *scratch, i int, acc []int32, tokens extent) {
	l := m.l
	rows, n := l.rows(i), tokens.hi-tokens.lo
	y := m.y[tokens.lo*l.w.Rows+i*StripRows:]
	scale := &m.t.Scale[tokens.lo]
	if rows == StripRows && n == acts.LaneTokens {
		lutFinishAVX2(&y[0], l.w.Rows, &acc[0], scale, &l.scale[i*StripRows])
		return
	}
	lutFinishAVX2(&s.edge[0], StripRows, &acc[0], scale, &l.scale[i*StripRows])
	for t := range n {
		copy(y[t*l.w.Rows:][:rows], s.edge[t*StripRows:])
	}
}
