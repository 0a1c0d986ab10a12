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

// Panels for processors with two ports of 512 bits: codes of two bands as bytes and scales
// as float32, unpacked once for all tiles of tokens. An activation is broadcast once for two
// products, so that loads do not bind, and the ports have nothing to unpack:
//
//	             sums, each token   each unit   T   share of VPDPBUSD
//	Q4, Q8, FP4  2                              7   0.80
//	Q4M, Q41     3                              7   0.73
//	Q6           4                  T           4   0.66
//
// Stores of unpacked codes, one a cycle, have to be made up for by the tokens.
//
// A panel is [groups]{codes [8 words][2 bands][16 rows][4], vectors [..][2 bands][16]}, and
// the vectors of a group are
//
//	Q4, Q8, FP4  d, -d·1.5·2²³
//	Q4M, Q41     d·sc, -d·sc·1.5·2²³, dmin·m
//	Q6           sc of both halves as int16 beside zeros, d in a unit's last group
//
// Codes of Q4, Q8 and FP4 are all 128 more than what they stand for: one family of tiles
// multiplies them.

// pairPlane is a word of both bands.
const pairPlane = 2 * planeBytes

// gfniPanel is a family of tiles over panels.
type gfniPanel struct {
	packing        // of which unit tells whether sums meet d at its end
	vectors int    // of a group
	tokens  [2]int // from and to
}

var gfniPanels = []gfniPanel{
	{packing{name: "Bytes", unit: 1}, 2, [2]int{5, 7}},
	{packing{name: "Least", unit: 1}, 3, [2]int{5, 7}},
	{packing{name: "Q6", unit: superGroups}, 3, [2]int{3, 4}},
}

// panelOf returns the family that multiplies what p unpacks to.
func panelOf(p packing) gfniPanel {
	name := p.name
	if p.least() {
		name = "Least"
	}
	for _, f := range gfniPanels {
		if f.name == name {
			return f
		}
	}
	return gfniPanels[0]
}

func (f gfniPanel) groupBytes() int { return (8 + f.vectors) * pairPlane }

// vector returns the place of a vector of a group.
func vector(i, band int) int { return (8+i)*pairPlane + band*planeBytes }

// gfniWriter emits the routine that unpacks.
func gfniWriter(p packing) {
	f := panelOf(p)
	name := "gfniPanel" + p.name + "AVX512"
	emit.Text(name, p.signature("func(panel *byte, codes *byte, scales *byte, stride int, groups int)"))
	gfniWriters.Add(0, p.keys("")...)
	emit.Contract(fmt.Sprintf("%s unpacks groups ≥ 1 groups of two bands of %s, whole scale units, that are stride bytes apart,", name, p.name),
		fmt.Sprintf("into a panel of %d bytes a group. It prefetches the same scales of the next two bands.", f.groupBytes()))
	t := gfni{tile: &tile{packing: p, bands: 1}, n: 2}
	t.codes = Load(Param("codes"), GP64()).(reg.GPVirtual)
	t.scales = Load(Param("scales"), GP64()).(reg.GPVirtual)
	t.stride = Load(Param("stride"), GP64()).(reg.GPVirtual)
	t.stride3 = GP64()
	LEAQ(Mem{Base: t.stride, Index: t.stride, Scale: 2}, t.stride3)
	panel := Load(Param("panel"), GP64())
	raise := t.raise()
	t.levelTable()
	put := func(v reg.VecVirtual, disp int) { VMOVDQU64(v, Mem{Base: panel, Disp: disp}) }
	group := func() {
		for j := range 8 {
			t.each(func(b int) {
				v := ZMM()
				t.unpackBand(j, 0, v)
				raise(v)
				put(v, j*pairPlane+b*planeBytes)
			})
		}
		t.each(func(b int) {
			for i, v := range t.panelScales() {
				put(v, vector(i, b))
			}
		})
		scales := t.scales
		if t.small != nil {
			scales = t.small
		}
		PREFETCHT1(Mem{Base: scales, Index: t.stride, Scale: 2, Disp: 2 * dense.BandRows})
		PREFETCHT1(Mem{Base: scales, Index: t.stride3, Scale: 1, Disp: 2 * dense.BandRows})
		ADDQ(U32(uint32(f.groupBytes())), panel)
	}
	t.loop(t.superScale(), group, func() {
		if t.name == "Q6" {
			t.each(func(b int) { put(t.wideScales()[0], vector(2, b)-f.groupBytes()) })
		}
	})
	emit.Done()
}

// raise gives what makes codes of Q4 128 more than what they stand for.
func (t *gfni) raise() func(v reg.VecVirtual) {
	if t.name != "Q4" {
		return func(reg.VecVirtual) {}
	}
	c := ZMM()
	emit.FillLanes((128-8)*0x01010101, c)
	return func(v reg.VecVirtual) { VPADDB(c, v, v) }
}

// panelScales gives the vectors that each group of a band has.
func (t *gfni) panelScales() []reg.VecVirtual {
	if t.name == "Q6" {
		return []reg.VecVirtual{t.halfScale(0), t.halfScale(1)}
	}
	d, off := t.magicScale()
	if t.packing.least() {
		return []reg.VecVirtual{d, off, t.minimum()}
	}
	return []reg.VecVirtual{d, off}
}

// gfniPanelTile emits the product of a panel with some tokens.
func gfniPanelTile(f gfniPanel, tokens int) {
	name := fmt.Sprintf("gfni%sPanelAVX512x%d", f.name, tokens)
	emit.Text(name, f.signature("func(y *float32, ld int, panel *byte, acts *byte, lda int, groups int, fetch uintptr, lines int)"))
	gfniPanelTiles.Add(tokens, fmt.Sprintf("%q", f.name))
	emit.Contract(fmt.Sprintf("%s adds to y[%d][%d] (ld values a token) the products of groups ≥ 1 groups of a", name, tokens, 2*dense.BandRows),
		"panel, whole scale units, with rows of activation records that are lda bytes apart. It prefetches",
		"groups · lines ≥ 1 lines of 64 bytes from fetch on.")
	t := gfni{tile: &tile{packing: f.packing, bands: 1, tokens: tokens}, n: 2}
	t.codes = Load(Param("panel"), GP64()).(reg.GPVirtual)
	t.acts = emit.NewRows("acts", "lda", 0, tokens)
	groups := Load(Param("groups"), GP64()).(reg.GPVirtual)
	prefetch := prefetchLines(Load(Param("fetch"), GP64()).(reg.GPVirtual))
	for range t.n {
		t.sums = append(t.sums, row(tokens))
	}
	group := func() {
		prefetch()
		t.panelGroup()
		ADDQ(U32(uint32(f.groupBytes())), t.codes)
		t.acts.Advance(acts.ActRecord)
	}
	if t.unit == 1 {
		t.eachY(func(i, b int, y Mem) { VMOVUPS(y, t.sums[b][i]) })
		Label("loop")
		group()
		DECQ(groups)
		JNE(LabelRef("loop"))
		t.eachY(func(i, b int, y Mem) { VMOVUPS(t.sums[b][i], y) })
		emit.Done()
		return
	}
	Label("loop")
	for b := range t.sums {
		for _, v := range t.sums[b] {
			emit.Zero(v)
		}
	}
	inner := GP64()
	MOVQ(t.groupsOfUnit(), inner)
	Label("group")
	group()
	DECQ(inner)
	JNE(LabelRef("group"))
	t.d = row(t.n)
	for b, d := range t.d {
		VMOVUPS(t.code(vector(f.vectors-1, b)-f.groupBytes()), d)
	}
	t.end()
	SUBQ(t.groupsOfUnit(), groups)
	JNE(LabelRef("loop"))
	emit.Done()
}

// panelGroup adds a group's products to the sums.
func (t *gfni) panelGroup() {
	switch t.name {
	case "Q6":
		first := t.panelDots(0, 4, t.record(acts.RecHalf32))
		for b := range first {
			for _, v := range first[b] {
				VPMADDWD(t.code(vector(0, b)), v, v)
			}
		}
		second := t.panelDots(4, 8, t.record(acts.RecHalf32+4))
		for b := range first {
			for i, v := range first[b] {
				VPDPWSSD(t.code(vector(1, b)), second[b][i], v)
			}
		}
		t.convert(first)
	case "Bytes":
		sum := t.panelDots(0, 8, t.record(acts.RecMagic128))
		t.panelScale(sum)
		t.panelAdd(sum)
	case "Least":
		sum := t.panelDots(0, 8, func(int) Mem { return everyDword(magicBits) })
		t.panelScale(sum)
		for b := range sum {
			least := ZMM()
			VMOVUPS(t.code(vector(2, b)), least)
			for i, v := range sum[b] {
				VFNMADD231PS_BCST(t.acts.At(i, acts.RecSum), least, v)
			}
		}
		t.panelAdd(sum)
	}
}

// panelDots adds the products of words [from, to) to sums that begin at start.
func (t *gfni) panelDots(from, to int, start func(i int) Mem) [][]reg.VecVirtual {
	sum := [][]reg.VecVirtual{row(t.tokens), row(t.tokens)}
	for i, v := range sum[0] {
		VPBROADCASTD(start(i), v)
		VMOVDQA64(v, sum[1][i])
	}
	for j := from; j < to; j++ {
		code := row(t.n)
		for b, v := range code {
			VMOVDQU64(t.code(j*pairPlane+b*planeBytes), v)
		}
		for i := range t.tokens {
			a := ZMM()
			VPBROADCASTD(t.acts.At(i, 4*j), a)
			for b := range sum {
				VPDPBUSD(a, code[b], sum[b][i])
			}
		}
	}
	return sum
}

// panelScale turns sums, 1.5·2²³ + Σ as float32, into d·Σ.
func (t *gfni) panelScale(sum [][]reg.VecVirtual) {
	for b := range sum {
		d := ZMM()
		VMOVUPS(t.code(vector(0, b)), d)
		for _, v := range sum[b] {
			VFMADD213PS(t.code(vector(1, b)), d, v)
		}
	}
}

// panelAdd adds the sums of a group, scaled by its activations, to y's.
func (t *gfni) panelAdd(sum [][]reg.VecVirtual) {
	for i := range t.tokens {
		a := ZMM()
		VBROADCASTSS(t.acts.At(i, acts.RecScale), a)
		for b := range sum {
			VFMADD231PS(a, sum[b][i], t.sums[b][i])
		}
	}
}
