//go:build arm64 && !purego

package ternary

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// i8mmKernel unfolds weights once for many tokens and multiplies them by SMMLA, 32
// products an instruction.
var i8mmKernel = &kernel{
	name:      "neon:i8mm",
	isa:       cpu.NEON,
	form:      func(matrix.Packing, int) (actForm, int) { return formOctets, 2 },
	tokens:    panelTokens,
	strips:    16,
	perThread: 8,
	mul:       mulPanels,
}

// A part is panelTokens tokens: more of them would unfold weights less often, and their
// sums, [tokens][64 rows], are to stay in L1 with two panels of panelBlocks blocks, which
// are 16 KiB or 20.
const (
	panelTokens = 64
	panelBlocks = 64
	panelRows   = 8
	panelOctet  = panelRows * 8
)

// panels write the trits of blocks of panelRows rows, to which bias was added.
var panels = map[int]struct {
	write func(panel *int8, w *byte, blocks int)
	bias  int32
}{4: {panelI2, 1}, 5: {panelI1, 0}}

// i8mmTiles add the products of a panel and of some tokens, the most first.
var i8mmTiles = []struct {
	tokens int
	add    func(sums *int32, panel, act *int8, stride, octets int)
}{{8, i8mmTile8}, {4, i8mmTile4}, {2, i8mmTile2}}

func mulPanels(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
	l := m.l
	write := panels[l.g]
	act := r.act[(tokens.lo-r.lo)/2*acts.OctetBytes(l.w.Cols, l.g):]
	s.panel = cpu.Grow(s.panel, 2*panelBlocks/2*5*panelOctet)
	for i := strips.lo; i < strips.hi; i++ {
		w := l.stripData(i)
		for t := range tokens.hi - tokens.lo {
			sums, from := s.acc32[t*StripRows:][:StripRows], write.bias*m.t.NegSum[tokens.lo+t]
			for row := range sums {
				sums[row] = from
			}
		}
		for row := 0; row < StripRows; row += 2 * panelRows {
			for b := 0; b < l.blocks; b += panelBlocks {
				n := min(panelBlocks, l.blocks-b)
				m.addPanels(s, act, tokens.hi-tokens.lo, w[b*StripRows*acts.BlockBytes:], row, b, n)
			}
		}
		for t := tokens.lo; t < tokens.hi; t++ {
			m.finishRow(s, i, t, s.acc32[(t-tokens.lo)*StripRows:])
		}
	}
}

// addPanels adds n blocks from b on, of 16 rows at w from row on, to the sums of some tokens.
func (m *Task) addPanels(s *scratch, act []int8, tokens int, w []byte, row, b, n int) {
	g, stride := m.l.g, acts.OctetBytes(m.l.w.Cols, m.l.g)
	octets := (n + 1) / 2 * g
	var two [2][]byte
	for half := range two {
		two[half] = s.panel[half*octets*panelOctet:][:octets*panelOctet]
		at := row + half*panelRows
		panels[g].write((*int8)(unsafe.Pointer(&two[half][0])), &w[at*acts.BlockBytes], n)
	}
	for t := 0; t < tokens; {
		tile := i8mmTiles[len(i8mmTiles)-1]
		for _, f := range i8mmTiles {
			if f.tokens <= tokens-t {
				tile = f
				break
			}
		}
		x := act[t/2*stride+b/2*16*g:]
		_ = x[(tile.tokens/2-1)*stride+16*octets-1]
		for half, panel := range two {
			tile.add(&s.acc32[t*StripRows+row+half*panelRows], (*int8)(unsafe.Pointer(&panel[0])), &x[0], stride, octets)
		}
		t += tile.tokens
	}
}
