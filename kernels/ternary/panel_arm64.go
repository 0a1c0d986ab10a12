//go:build arm64 && !purego

package ternary

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// i8mmKernel multiplies by SMMLA, 32 products an instruction: many tokens by panels, 4 by
// tiles that unpack the trits themselves.
var i8mmKernel = &kernel{
	name: "neon:i8mm",
	isa:  cpu.NEON,
	form: func(_ matrix.Packing, n int) (actForm, int) {
		if n < i8mmPanelFrom {
			return formQuads, 4
		}
		return formOctets, 2
	},
	tokens:    panelTokens,
	strips:    16,
	perThread: 8,
	mul: func(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
		for i := strips.lo; i < strips.hi; i++ {
			if r.form == formQuads {
				m.mulQuads(r, s, i, tokens, i8mmQuads[m.l.g])
			} else {
				m.byPanels(r, s, i, tokens, addOctets)
			}
		}
	},
}

// i8mmPanelFrom is the number of tokens from which panels pay, by count of instructions.
const i8mmPanelFrom = 8

// i8mmQuads sum tiles of 4 tokens.
var i8mmQuads = map[int]quadFunc{5: {i8mmI1x4, 8}, 4: {i8mmI2x4, 16}}

// A part is panelTokens tokens: more of them would unfold weights less often, and their
// sums, [tokens][64 rows], are to stay in L1 with a panel of panelBlocks blocks, which is
// 16 KiB or 20.
const (
	panelTokens = 64
	panelBlocks = 64
	panelRows   = 16
	mostPanel   = panelBlocks * acts.BlockBytes * 5 * panelRows
)

// writePanel unfolds a panel; for bytes of 4 trits it adds 1 to each.
type writePanel func(panel *int8, w *byte, blocks int)

var (
	octetWriters = map[int]writePanel{4: panelI2, 5: panelI1}
	quadWriters  = map[int]writePanel{4: quadsI2, 5: quadsI1}
)

// addPanel adds the products of panelRows rows and n blocks from b on, at w, to
// sums[tokens][64 rows].
type addPanel func(m *Task, r *segmentRun, panel []byte, sums []int32, w []byte, tokens extent, b, n int)

// byPanels multiplies strip i with some tokens.
func (m *Task) byPanels(r *segmentRun, s *scratch, i int, tokens extent, add addPanel) {
	l, w := m.l, m.l.stripData(i)
	s.panel = cpu.Grow(s.panel, mostPanel)
	bias := int32(5 - l.g) // g = 4 has trits + 1
	for t := tokens.lo; t < tokens.hi; t++ {
		sums, from := s.acc32[(t-tokens.lo)*StripRows:][:StripRows], bias*m.t.NegSum[t]
		for row := range sums {
			sums[row] = from
		}
	}
	for row := 0; row < StripRows; row += panelRows {
		for b := 0; b < l.blocks; b += panelBlocks {
			n := min(panelBlocks, l.blocks-b)
			add(m, r, s.panel, s.acc32[row:], w[(b*StripRows+row)*acts.BlockBytes:], tokens, b, n)
		}
	}
	for t := tokens.lo; t < tokens.hi; t++ {
		m.finishRow(s, i, t, s.acc32[(t-tokens.lo)*StripRows:])
	}
}

// octetTiles add the products of half the rows of a panel and of some tokens, the most first.
var octetTiles = []struct {
	tokens int
	add    func(sums *int32, panel, act *int8, stride, octets int)
}{{8, i8mmTile8}, {4, i8mmTile4}, {2, i8mmTile2}}

// addOctets takes tokens in pairs; beside an odd last one stand sums that nobody reads.
func addOctets(m *Task, r *segmentRun, panel []byte, sums []int32, w []byte, tokens extent, b, n int) {
	g, stride := m.l.g, acts.OctetBytes(m.l.w.Cols, m.l.g)
	octets := (n + 1) / 2 * g
	const half, octet = panelRows / 2, panelRows / 2 * 8
	for i := range 2 {
		octetWriters[g](int8At(panel, i*octets*octet), &w[i*half*acts.BlockBytes], n)
	}
	for t := tokens.lo; t < tokens.hi; {
		tile := octetTiles[len(octetTiles)-1]
		for _, f := range octetTiles {
			if f.tokens <= tokens.hi-t {
				tile = f
				break
			}
		}
		x := r.act[(t-r.lo)/2*stride+b/2*16*g:]
		_ = x[(tile.tokens/2-1)*stride+16*octets-1]
		for i := range 2 {
			tile.add(&sums[(t-tokens.lo)*StripRows+i*half], int8At(panel, i*octets*octet), &x[0], stride, octets)
		}
		t += tile.tokens
	}
}

// addQuads takes whole tiles of 4 tokens.
func addQuads(m *Task, r *segmentRun, panel []byte, sums []int32, w []byte, tokens extent, b, n int) {
	g := m.l.g
	quadWriters[g](int8At(panel, 0), &w[0], n)
	row := m.l.blocks * acts.BlockBytes * g
	for t := tokens.lo; t < tokens.hi; t += 4 {
		x := r.act[(t-r.lo)*row+4*acts.BlockBytes*b*g:][:4*acts.BlockBytes*n*g]
		sdotTile4(&sums[(t-tokens.lo)*StripRows], int8At(panel, 0), &x[0], n*g)
	}
}

func int8At(b []byte, i int) *int8 { return (*int8)(unsafe.Pointer(&b[i])) }
