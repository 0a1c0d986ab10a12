package grouped

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// A panel is some groups of one band unfolded for products with many tokens:
// what a tile would do to codes and scales is done once. A group is
//
//	  0  codes u8, planes as those of Q8: as they are, FP4 levels, Q6 mixed:
//	     plane j has columns 2j, 2j+1, 16+2j and 17+2j
//	512  d f32[16]; Q6 and Q2: only in the last group of a unit, of Q2 d/8
//	576  byte scales: Q4M int16[32], each twice, Q6 int16[16][2], of both
//	     halves
//	640  Q4M: dmin·m f32[16], which Q41 has at 576
//
// Mixed codes add up in int16 lanes of which the even ones hold the first half
// of a group and the odd ones the second, so that one multiply-add of pairs
// puts both halves' scales on and adds them.
const (
	panelD     = 8 * planeBytes
	panelSmall = panelD + 64
	panelLast  = panelSmall + 64
)

// panelBytes is the size of a group of a panel.
var panelBytes = map[string]int{"Q4": panelSmall, "FP4": panelSmall, "Q4M": panelLast + 64, "Q41": panelLast, "Q6": panelLast,
	"Q2": lowPanelBytes, "NL3K": panelLast, "NL4S": panelLast}

// panelWriter generates the routine that unfolds groups.
func panelWriter(p packing) {
	name := "panel" + p.name + "AVX2"
	emit.Text(name, p.signature("func(dst *byte, codes *byte, scales *byte, ahead int, groups int)"))
	p.in(writerTables).Add(0, p.keys("")...)
	emit.Contract(name+" unfolds groups ≥ 1 groups of "+p.name+", whole scale units, into a panel; it prefetches",
		"the scales that lie ahead bytes further on.")
	t := &tile{packing: p, bands: 1}
	dst := Load(Param("dst"), GP64()).(reg.GPVirtual)
	ahead := Load(Param("ahead"), GP64()).(reg.GPVirtual)
	t.codes = Load(Param("codes"), GP64()).(reg.GPVirtual)
	t.scales = Load(Param("scales"), GP64()).(reg.GPVirtual)
	to := func(disp int) Mem { return Mem{Base: dst, Disp: disp} }
	codes := map[string]func() func(to func(int) Mem){"Q4": t.unfold4, "Q4M": t.unfold4, "Q41": t.unfold4, "FP4": t.unfold4, "Q6": t.unfold6, "NL3K": t.unfold6, "NL4S": t.unfold6}[p.name]()
	size := panelBytes[p.name]
	t.loop(nil, func() {
		scales := t.scales
		if p.unit > 1 {
			scales = t.small
		}
		PREFETCHT1(Mem{Base: scales, Index: ahead, Scale: 1})
		codes(to)
		t.unfoldScales(to)
		ADDQ(U32(uint32(size)), dst)
	}, func() {
		if p.super() {
			t.unfoldD(func(disp int) Mem { return to(disp - size) })
		}
	})
	emit.Done()
}

// unfoldScales writes the scales of the current group.
func (t *tile) unfoldScales(to func(int) Mem) {
	small := func(sc []reg.VecVirtual) {
		for v := range sc {
			VMOVDQU(sc[v], to(panelSmall+v*32))
		}
	}
	switch t.name {
	case "Q4M":
		small(t.scalePairs())
		t.unfoldMinimums(to)
	case "Q41":
		t.unfoldMinimums(to)
	case "Q6", "NL3K", "NL4S":
		small(t.pairs(t.halfScales(0), t.halfScales(1)))
		return
	}
	t.unfoldD(to)
}

// unfoldMinimums writes those of the current group.
func (t *tile) unfoldMinimums(to func(int) Mem) {
	for v, least := range t.minimums() {
		VMOVUPS(least, to(t.panelLeast()+v*32))
	}
}

// panelLeast is where a panel has minimums.
func (p packing) panelLeast() int { return panelBytes[p.name] - 64 }

// unfoldD writes the float16 scales.
func (t *tile) unfoldD(to func(int) Mem) {
	for v := range vectors {
		d := YMM()
		VCVTPH2PS(t.scaleAt(v*16), d)
		t.putFactor([]reg.VecVirtual{d})
		VMOVUPS(d, to(panelD+v*32))
	}
}

func (t *tile) unfold4() func(to func(int) Mem) {
	low := YMM()
	emit.FillLanes(0x0f0f0f0f, low)
	level := t.levels(false)
	return func(to func(int) Mem) {
		for p := range 4 {
			for v := range vectors {
				a, b := YMM(), YMM()
				VMOVDQU(t.code(p*planeBytes+v*32), a)
				VPSRLW(Imm(4), a, b)
				VPAND(low, a, a)
				VPAND(low, b, b)
				level(a)
				level(b)
				VMOVDQU(a, to(p*planeBytes+v*32))
				VMOVDQU(b, to((4+p)*planeBytes+v*32))
			}
		}
	}
}

func (t *tile) unfold6() func(to func(int) Mem) {
	codes := t.narrowCodes()
	return func(to func(int) Mem) {
		for _, p := range codes.order {
			for v := range vectors {
				first, second, m := codes.word(0, p, v), codes.word(1, p, v), YMM()
				VPSLLD(Imm(16), second, m)
				VPBLENDW(Imm(0xaa), m, first, m)
				VMOVDQU(m, to(2*p*planeBytes+32*v))
				VPSRLD(Imm(16), first, first)
				VPBLENDW(Imm(0xaa), second, first, first)
				VMOVDQU(first, to((2*p+1)*planeBytes+32*v))
			}
		}
	}
}
