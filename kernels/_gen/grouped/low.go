package grouped

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
	"github.com/lutra-lm/lutra/kernels/_gen/ternary"
)

// Products with codes of one and two bits. Codes enter the multiply-adds times
// eight, in bits 3 and 4 of a byte (a single bit twice that, in bit 4), so that
// sums that start from -8·Σq, which every record has, end as eight times those of
// the weights: the codes' offset costs nothing. d/8 makes up for it, exactly.

var lowPackings = []packing{
	{name: "Q1G128", low: 1, codeBytes: planeBytes, unitBytes: 2 * dense.BandRows, unit: 4},
	{name: "Q2", low: 2, codeBytes: 2 * planeBytes, unitBytes: 2 * dense.BandRows, widest: 4}, // Q2G64 and Q2G128
}

// The most tokens of AVX-VNNI tiles that take both vectors of a band, and of all of
// them.
const (
	lowBoth  = 4
	lowWidth = 8
)

// eighth is 1/8 in every lane, for scales.
var eighth Mem

// emitEighth makes it in the file that is being written.
func emitEighth(name string) {
	eighth = emit.Table(name, emit.Fill(64, func(i int) byte { return []byte{0, 0, 0, 0x3e}[i%4] }))
}

// Low emits the products with codes of one and two bits.
func Low() {
	emitEighth("eighth")
	quads()
	for _, p := range lowPackings {
		tallest := avx2Tokens
		if p.low == 1 { // quads multiply two bands; one alone goes token by token
			tallest = 1
		}
		for _, t := range emit.Widths(1, tallest) {
			lowNarrow(p, 1, t)
		}
		if p.low > 1 { // two bands look up bits in tables
			lowNarrow(p, streamBands, 1)
			lowPanelWriter(p)
			for _, t := range p.panelTokens() {
				lowPanel(p, t)
			}
		}
		lowDot(p, streamBands, 1)
		for _, t := range emit.Widths(1, lowWidth) {
			lowDot(p, 1, t)
		}
		if p.low == 1 {
			lowNibbles(p, wideBands)
		} else {
			lowWide(p, "AVX512")
		}
		for _, t := range emit.Widths(2, pairTokens) {
			lowPair(p, t)
		}
	}
}

// field returns the place of word j of a group: bits of plane from lowest on.
func (p packing) field(j int) (plane, lowest int) { return j * p.low / 8, j * p.low % 8 }

// lowMask returns the bits of a code that begins at bit at, in four bytes.
func (p packing) lowMask(at int) uint32 { return uint32(1<<p.low-1) << at * 0x01010101 }

// lowAt returns the bit where codes begin that are eight times themselves, or a single
// bit sixteen times.
func (p packing) lowAt() int { return 5 - p.low }

// lowCode sets code to word j's codes, moved from their field in raw to bit at.
func (p packing) lowCode(raw, mask, code reg.VecVirtual, j, at int) {
	_, lowest := p.field(j)
	and := func(r reg.VecVirtual) {
		if code.Size() == 64 {
			VPANDD(mask, r, code)
		} else {
			VPAND(mask, r, code)
		}
	}
	switch {
	case lowest < at:
		VPSLLW(Imm(uint64(at-lowest)), raw, code)
	case lowest > at:
		VPSRLW(Imm(uint64(lowest-at)), raw, code)
	default:
		and(raw)
		return
	}
	and(code)
}

// lowD multiplies the scales of a band by 1/8.
func lowD(d []reg.VecVirtual) []reg.VecVirtual {
	for _, v := range d {
		VMULPS(eighth, v, v)
	}
	return d
}

// lowWide generates an AVX-512 VNNI tile of one token.
func lowWide(p packing, isa string) {
	t := beginStream(p, isa, wideBands)
	mask := ZMM()
	emit.FillLanes(p.lowMask(p.lowAt()), mask)
	super := make([]*superSums, wideBands)
	for b := range super {
		super[b] = t.superRegisters(b, columns(row(1)))
	}
	t.loop(func() { super[t.band].begin() }, func() {
		sum := row(1)
		for i := range sum {
			VPBROADCASTD(t.acts.At(i, acts.RecSum8), sum[i])
		}
		var raw reg.VecVirtual
		for j := range 8 {
			if plane, lowest := p.field(j); lowest == 0 {
				raw = ZMM()
				VMOVDQU64(t.code(plane*planeBytes), raw)
			}
			code := ZMM()
			p.lowCode(raw, mask, code, j, p.lowAt())
			t.dot(sum, code, 4*j)
		}
		for i, v := range sum {
			VCVTDQ2PS(v, v)
			VFMADD231PS_BCST(t.acts.At(i, acts.RecScale), v, super[t.band].regs[i][0])
		}
	}, func() { super[t.band].end(lowD(t.wideScales())) })
	emit.Done()
}

// columns makes a vector a token of a row of registers.
func columns(r []reg.VecVirtual) [][]reg.VecVirtual {
	c := make([][]reg.VecVirtual, len(r))
	for i, v := range r {
		c[i] = []reg.VecVirtual{v}
	}
	return c
}

// lowPair generates an AVX-512 VNNI tile of two bands.
func lowPair(p packing, tokens int) {
	t := beginPair(p, tokens)
	mask := ZMM()
	emit.FillLanes(p.lowMask(p.lowAt()), mask)
	super := []*superSums{t.superRegisters(0, columns(row(tokens))), t.superRegisters(1, columns(row(tokens)))}
	t.loop(func() {
		super[0].begin()
		super[1].begin()
	}, func() {
		sum := t.pairStart(acts.RecSum8, 0)
		var raw [2]reg.VecVirtual
		for j := range 8 {
			plane, lowest := p.field(j)
			var code [2]reg.VecVirtual
			t.both(func(b int) {
				if lowest == 0 {
					raw[b] = ZMM()
					VMOVDQU64(t.code(plane*planeBytes), raw[b])
				}
				code[b] = ZMM()
				p.lowCode(raw[b], mask, code[b], j, p.lowAt())
			})
			t.pairDot(sum, code, 4*j)
		}
		for i := range tokens {
			a := ZMM()
			VBROADCASTSS(t.acts.At(i, acts.RecScale), a)
			for b := range sum {
				VCVTDQ2PS(sum[b][i], sum[b][i])
				super[b].add(i, 0, a, sum[b][i])
			}
		}
	}, func() { t.both(func(b int) { super[b].end(lowD(t.wideScales())) }) })
	emit.Done()
}

// lowDot generates an AVX-VNNI tile.
func lowDot(p packing, bands, tokens int) {
	t := begin(p, emit.VexSuffix, bands, tokens)
	t.fetchStride()
	mask := YMM()
	emit.FillLanes(p.lowMask(p.lowAt()), mask)
	sets := [][]int{{0, 1}}
	if tokens > lowBoth {
		sets = [][]int{{0}, {1}}
	}
	super := t.superSums()
	t.loop(func() { super[t.band].begin() }, func() {
		for _, vs := range sets {
			sum := t.dotStart(vs, acts.RecSum8, 0)
			raw := make([]reg.VecVirtual, len(vs))
			for j := range 8 {
				plane, lowest := p.field(j)
				code := make([]reg.VecVirtual, len(vs))
				for k, v := range vs {
					if lowest == 0 {
						raw[k] = ternary.LoadY(t.code(plane*planeBytes + v*32))
					}
					code[k] = YMM()
					p.lowCode(raw[k], mask, code[k], j, p.lowAt())
				}
				t.dotWord(sum, code, 4*j)
			}
			for i := range tokens {
				a := YMM()
				VBROADCASTSS(t.acts.At(i, acts.RecScale), a)
				for k, v := range vs {
					VCVTDQ2PS(sum[k][i], sum[k][i])
					super[t.band].add(i, v, a, sum[k][i])
				}
			}
		}
	}, func() { super[t.band].end(lowD(t.superScales())) })
	emit.Done()
}

// narrowAt returns the bit where codes begin in AVX2, where sums of 16 products are int16: two
// bits as they are, a single bit sixteen times itself.
func (p packing) narrowAt() int {
	if p.low == 1 {
		return 4
	}
	return 0
}

// narrowWeight widens such sums to eight times those of the weights.
func (p packing) narrowWeight() uint32 {
	if p.low == 1 {
		return 0x00010001
	}
	return 0x00080008
}

// lowNarrow generates an AVX2 tile.
func lowNarrow(p packing, bands, tokens int) {
	t := begin(p, "AVX2", bands, tokens)
	t.fetchStride()
	mask, weight := YMM(), YMM()
	emit.FillLanes(p.lowMask(p.narrowAt()), mask)
	emit.FillLanes(p.narrowWeight(), weight)
	super := t.superSums()
	t.loop(func() { super[t.band].begin() }, func() {
		t.lowGroup(weight, super[t.band], func(j int) func(v int) reg.VecVirtual {
			return func(v int) reg.VecVirtual {
				plane, _ := p.field(j)
				code := ternary.LoadY(t.code(plane*planeBytes + v*32))
				p.lowCode(code, mask, code, j, p.narrowAt())
				return code
			}
		})
	}, func() { super[t.band].end(lowD(t.superScales())) })
	emit.Done()
}

// lowGroup adds the products of a group, whose codes of word j code loads, to the
// sums of its unit.
func (t *tile) lowGroup(weight reg.VecVirtual, super *superSums, code func(j int) func(v int) reg.VecVirtual) {
	sum := grid(t.tokens)
	for j := range 8 {
		t.addWord(sum, 4*j, j == 0, code(j))
	}
	for i := range t.tokens {
		a := YMM()
		VPBROADCASTD(t.acts.At(i, acts.RecSum8), a)
		for v := range vectors {
			VPMADDWD(weight, sum[i][v], sum[i][v])
			VPADDD(a, sum[i][v], sum[i][v])
		}
	}
	t.superAdd(super, sum)
}

// lowPanelBytes is the size of a group of a panel: codes as AVX2 tiles unfold
// them, and d/8, which only the last group of a unit has.
const lowPanelBytes = panelSmall

// lowPanelWriter generates the routine that unfolds groups.
func lowPanelWriter(p packing) {
	name := "panel" + p.name + "AVX2"
	emit.Text(name, p.signature("func(dst *byte, codes *byte, scales *byte, ahead int, groups int)"))
	p.in(writerTables).Add(0, p.keys("")...)
	emit.Contract(name+" unfolds groups ≥ 1 groups of "+p.name+", whole scale units, into a panel; it prefetches",
		"the scales that lie ahead bytes further on.")
	t := &tile{packing: p, bands: 1}
	dst, ahead := Load(Param("dst"), GP64()).(reg.GPVirtual), Load(Param("ahead"), GP64()).(reg.GPVirtual)
	t.codes = Load(Param("codes"), GP64()).(reg.GPVirtual)
	t.scales = Load(Param("scales"), GP64()).(reg.GPVirtual)
	mask := YMM()
	emit.FillLanes(p.lowMask(p.narrowAt()), mask)
	t.loop(func() { PREFETCHT1(Mem{Base: t.scales, Index: ahead, Scale: 1}) }, func() {
		for v := range vectors {
			var raw reg.VecVirtual
			for j := range 8 {
				if plane, lowest := p.field(j); lowest == 0 {
					raw = ternary.LoadY(t.code(plane*planeBytes + v*32))
				}
				code := YMM()
				p.lowCode(raw, mask, code, j, p.narrowAt())
				VMOVDQU(code, Mem{Base: dst, Disp: j*planeBytes + v*32})
			}
		}
		ADDQ(U32(lowPanelBytes), dst)
	}, func() {
		for v, d := range lowD(t.superScales()) {
			VMOVUPS(d, Mem{Base: dst, Disp: panelD + v*32 - lowPanelBytes})
		}
	})
	emit.Done()
}

// lowPanel generates an AVX2 tile over a panel.
func lowPanel(p packing, tokens int) {
	name := fmt.Sprintf("grouped%sPanelAVX2x%d", p.name, tokens)
	t, groups, prefetch := beginPanel(p, name, tokens)
	weight := YMM()
	emit.FillLanes(p.narrowWeight(), weight)
	super := t.superMemory(0)
	t.panelUnits(groups, super, func() {
		prefetch()
		t.lowGroup(weight, super, t.panelCode)
	})
	emit.Done()
}
