package grouped

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// panelTile generates an AVX2 tile over a panel. Meanwhile it fetches codes of a panel
// to come: unfolding has nothing else to do while it waits for memory.
func panelTile(p packing, tokens int) {
	name := fmt.Sprintf("grouped%sPanelAVX2x%d", p.name, tokens)
	t, groups, prefetch := beginPanel(p, name, tokens)
	if p.name == "Q6" {
		t.panelQ6(groups, prefetch)
	} else {
		group := map[string]func() func(){"Q4": t.panelQ4, "Q4M": t.panelQ4, "Q41": t.panelQ4, "FP4": t.panelQ4}[p.name]()
		Label("loop")
		prefetch()
		group()
		t.nextPanelGroup()
		DECQ(groups)
		JNE(LabelRef("loop"))
	}
	emit.Done()
}

// beginPanel begins such a tile. prefetch fetches what is a group's part.
func beginPanel(p packing, name string, tokens int) (t *tile, groups reg.GPVirtual, prefetch func()) {
	emit.Text(name, p.signature("func(y *float32, ld int, panel *byte, acts *byte, lda int, fetch *byte, ahead int, lines int, groups int)"))
	p.in(panelTables).Add(tokens, p.keys("")...)
	emit.Contract(fmt.Sprintf("%s adds to y[%d][%d] (ld values a token) the products of groups ≥ 1 groups of a", name, tokens, dense.BandRows),
		fmt.Sprintf("panel of %s with rows of activation records that are lda bytes apart. It prefetches", p.name),
		"groups · lines ≥ 1 lines of 64 bytes that lie ahead bytes from fetch.")
	t = &tile{packing: p, bands: 1, tokens: tokens}
	t.codes = Load(Param("panel"), GP64()).(reg.GPVirtual)
	t.acts = emit.NewRows("acts", "lda", 0, tokens)
	t.y = emit.NewRows("y", "ld", 2, tokens)
	fetch := Load(Param("fetch"), GP64()).(reg.GPVirtual)
	ADDQ(Load(Param("ahead"), GP64()), fetch)
	groups = Load(Param("groups"), GP64()).(reg.GPVirtual)
	return t, groups, prefetchLines(fetch)
}

// prefetchLines gives what prefetches the next lines, as many as the parameter says.
func prefetchLines(fetch reg.GPVirtual) (prefetch func()) {
	lines, line := Load(Param("lines"), GP64()), GP64()
	return func() {
		MOVQ(lines, line)
		Label("fetch")
		PREFETCHT1(Mem{Base: fetch})
		ADDQ(Imm(64), fetch)
		DECQ(line)
		JNE(LabelRef("fetch"))
	}
}

// nextPanelGroup moves on to the next group.
func (t *tile) nextPanelGroup() {
	ADDQ(U32(uint32(panelBytes[t.name])), t.codes)
	t.acts.Advance(acts.ActRecord)
}

// panelUnits runs group over all groups of whole units, whose sums are super.
func (t *tile) panelUnits(groups reg.GPVirtual, super *superSums, group func()) {
	Label("loop")
	super.begin()
	inner := GP64()
	MOVQ(t.groupsOfUnit(), inner)
	Label("group")
	group()
	t.nextPanelGroup()
	DECQ(inner)
	JNE(LabelRef("group"))
	super.end(t.panelPair(panelD - panelBytes[t.name]))
	SUBQ(t.groupsOfUnit(), groups)
	JNE(LabelRef("loop"))
}

// panelCode gives the loader of the codes of word j.
func (t *tile) panelCode(j int) func(v int) reg.VecVirtual {
	return func(v int) reg.VecVirtual {
		c := YMM()
		VMOVDQU(t.code(j*planeBytes+v*32), c)
		return c
	}
}

// start sets both sums of each token to the dword at disp of its record.
func (t *tile) start(sum [][]reg.VecVirtual, disp int) {
	for i := range sum {
		VPBROADCASTD(t.acts.At(i, disp), sum[i][0])
		VMOVDQA(sum[i][0], sum[i][1])
	}
}

func (t *tile) panelQ4() func() {
	ones := YMM()
	if t.name != "Q4M" {
		emit.FillLanes(0x00010001, ones)
	}
	return func() {
		sum := grid(t.tokens)
		t.startNibbles(sum)
		for j := range 8 {
			t.addWord(sum, 4*j, j == 0 && t.least(), t.panelCode(j))
		}
		if t.name != "Q4M" {
			t.each(func(i, v int) { VPMADDWD(ones, sum[i][v], sum[i][v]) })
		} else {
			sc := t.panelPair(panelSmall)
			t.each(func(i, v int) { VPMADDWD(sc[v], sum[i][v], sum[i][v]) })
		}
		t.panelFinish(sum)
	}
}

// panelQ6 multiplies mixed codes with mixed activations.
func (t *tile) panelQ6(groups reg.GPVirtual, prefetch func()) {
	super := t.superMemory(0)
	t.panelUnits(groups, super, func() {
		prefetch()
		Comment("sums start at -32 times those of the activations")
		sum := grid(t.tokens)
		t.start(sum, mixedStart)
		for j := range 8 {
			t.addWord(sum, 4*j, false, t.panelCode(j))
		}
		t.each(func(i, v int) { VPMADDWD(t.code(panelSmall+v*32), sum[i][v], sum[i][v]) })
		t.superAdd(super, sum)
	})
}

// panelFinish does as finish, with unfolded scales.
func (t *tile) panelFinish(sum [][]reg.VecVirtual) {
	d := t.panelPair(panelD)
	for i := range t.tokens {
		for v := range vectors {
			VCVTDQ2PS(sum[i][v], sum[i][v])
			VMULPS(d[v], sum[i][v], sum[i][v])
		}
		if t.least() {
			a := YMM()
			VBROADCASTSS(t.acts.At(i, acts.RecSum), a)
			for v := range vectors {
				VFNMADD231PS(t.code(t.panelLeast()+v*32), a, sum[i][v])
			}
		}
		a := YMM()
		VBROADCASTSS(t.acts.At(i, acts.RecScale), a)
		for v := range vectors {
			VFMADD213PS(t.y.At(i, v*32), a, sum[i][v])
			VMOVUPS(sum[i][v], t.y.At(i, v*32))
		}
	}
}

// panelPair loads the two vectors of a panel at disp.
func (t *tile) panelPair(disp int) []reg.VecVirtual {
	p := grid(1)[0]
	for v := range p {
		VMOVDQU(t.code(disp+v*32), p[v])
	}
	return p
}
