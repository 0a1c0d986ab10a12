package ternary

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// genericKernel is the portable kernel, and the one others are tested
// against: per token a table of sums for each of a block's 4 bytes, then
// four lookups for every 4g weights.
var genericKernel = &kernel{
	name:      "generic",
	isa:       cpu.Generic,
	form:      func(matrix.Packing, int) (actForm, int) { return formRows, 1 },
	tokens:    1,
	strips:    genericRows / StripRows,
	perThread: 4,
	mul:       mulGeneric,
}

func mulGeneric(m *Task, _ *segmentRun, s *scratch, strips, tokens extent) {
	l := m.l
	for n := tokens.lo; n < tokens.hi; n++ {
		q := m.t.Q[n*m.t.Stride : (n+1)*m.t.Stride]
		sums := s.sums[:(strips.hi-strips.lo)*StripRows]
		clear(sums)
		for b := range l.blocks {
			for c := range acts.BlockBytes {
				fillTable(&s.table[c], q[(b*acts.BlockBytes+c)*l.g:][:l.g], radix(l.w.Packing))
			}
			for i := strips.lo; i < strips.hi; i++ {
				lookUpBlock(sums[(i-strips.lo)*StripRows:], &s.table, l.stripData(i)[b*StripRows*acts.BlockBytes:])
			}
		}
		y := m.y[n*l.w.Rows : (n+1)*l.w.Rows]
		first := strips.lo * StripRows
		for i := range min(len(sums), len(y)-first) {
			y[first+i] = float32(sums[i]) * (m.t.Scale[n] * l.scale[first+i])
		}
	}
}

// fillTable sets t[Σ (w+1)·base^j] to Σ w·a[j] for all w of {-1, 0, +1}: the
// entries of j trits become entries of j+1 by subtracting, keeping and adding
// the next activation (Vec-LUT §4, topological precomputing). Between the
// entries of base 4 are some that no byte reads.
func fillTable(t *[256]int32, a []int8, base int) {
	t[0] = 0
	place, n := 1, 1
	for _, v := range a {
		d := int32(v)
		for i := range n {
			e := t[i]
			t[i], t[place+i], t[2*place+i] = e-d, e, e+d
		}
		n += 2 * place
		place *= base
	}
}

// lookUpBlock adds to the sums of 64 rows what one block of their weights
// contributes.
func lookUpBlock(sums []int32, t *[acts.BlockBytes][256]int32, w []byte) {
	sums, w = sums[:StripRows], w[:StripRows*acts.BlockBytes]
	for r := range sums {
		b := w[:acts.BlockBytes:acts.BlockBytes]
		sums[r] += t[0][b[0]] + t[1][b[1]] + t[2][b[2]] + t[3][b[3]]
		w = w[acts.BlockBytes:]
	}
}
