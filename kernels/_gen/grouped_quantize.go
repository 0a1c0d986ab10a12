package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quantize generates the AVX2 routine that makes activation records.
func quantize() {
	text("quantizeGroupsAVX2", "func(rec *byte, x *float32, groups int)")
	contract("quantizeGroupsAVX2 writes the records of groups ≥ 1 whole groups of 32 values.")
	rec := Load(Param("rec"), GP64())
	x := Load(Param("x"), GP64())
	groups := Load(Param("groups"), GP64())
	abs, ones8, ones16, order, scale127 := YMM(), YMM(), YMM(), YMM(), XMM()
	fillLanes(0x7fffffff, abs)
	fillLanes(0x01010101, ones8)
	fillLanes(0x00010001, ones16)
	VMOVDQU(packOrder(), order)
	t := GP32()
	MOVL(U32(0x42fe0000), t) // 127
	VMOVD(t, scale127)

	Label("group")
	Comment("top = largest |x|, compared as integers, in every lane")
	v := make([]reg.VecVirtual, 4)
	top, m := YMM(), YMM()
	for i := range v {
		v[i] = YMM()
		VMOVUPS(Mem{Base: x, Disp: 32 * i}, v[i])
		if i == 0 {
			VPAND(abs, v[i], top)
			continue
		}
		VPAND(abs, v[i], m)
		VPMAXSD(m, top, top)
	}
	VPERM2I128(Imm(1), top, top, m)
	VPMAXSD(m, top, top)
	VPSHUFD(Imm(0x4e), top, m)
	VPMAXSD(m, top, top)
	VPSHUFD(Imm(0xb1), top, m)
	VPMAXSD(m, top, top)

	Comment("outside [2^-100, largest finite]: zero codes, and a scale of 0 or NaN")
	bits := GP32()
	VMOVD(top.AsX(), bits)
	CMPL(bits, U32(0x0d800000))
	JLT(LabelRef("zero"))
	CMPL(bits, U32(0x7f800000))
	JGE(LabelRef("nan"))

	Comment("codes = round(x·(127/top))")
	inv, d := XMM(), XMM()
	VDIVSS(top.AsX(), scale127, inv)
	VDIVSS(scale127, top.AsX(), d)
	invs := YMM()
	VBROADCASTSS(inv, invs)
	for i := range v {
		VMULPS(invs, v[i], v[i])
		VCVTPS2DQ(v[i], v[i])
	}
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	VPACKSSWB(v[2], v[0], v[0])
	VPERMD(v[0], order, v[0])
	VMOVDQU(v[0], Mem{Base: rec})
	VMOVSS(d, Mem{Base: rec, Disp: recScale})

	Comment("int16 sums of columns k%4 < 2 and k%4 >= 2 of each half, a dword a half")
	pairs, halves := YMM(), YMM()
	VPMADDUBSW(v[0], ones8, pairs)
	VPSHUFD(Imm(0x4e), pairs, m)
	VPADDW(m, pairs, pairs)
	VPSHUFD(Imm(0xb1), pairs, m)
	VPADDW(m, pairs, pairs)
	VPMADDWD(ones16, pairs, halves)
	VPSLLW(Imm(5), pairs, pairs)
	zero := YMM()
	VPXOR(zero, zero, zero)
	VPSUBW(pairs, zero, pairs)
	VMOVD(pairs.AsX(), Mem{Base: rec, Disp: recStart6})
	VEXTRACTI128(Imm(1), pairs, pairs.AsX())
	VMOVD(pairs.AsX(), Mem{Base: rec, Disp: recStart6 + 4})

	Comment("sums of the halves and of the group")
	lo, hi := GP32(), GP32()
	VMOVD(halves.AsX(), lo)
	VEXTRACTI128(Imm(1), halves, halves.AsX())
	VMOVD(halves.AsX(), hi)
	sum, f := GP32(), XMM()
	LEAL(Mem{Base: lo, Index: hi, Scale: 1}, sum)
	VPXOR(f, f, f)
	VCVTSI2SSL(sum, f, f)
	VMOVSS(f, Mem{Base: rec, Disp: recSum})
	NEGL(sum)
	SHLL(Imm(2), sum)
	MOVW(sum.As16(), Mem{Base: rec, Disp: recStart4})
	MOVW(sum.As16(), Mem{Base: rec, Disp: recStart4 + 2})
	SHLL(Imm(1), sum)
	MOVL(sum, Mem{Base: rec, Disp: recSum8})
	for i, h := range []reg.GPVirtual{lo, hi} {
		NEGL(h)
		SHLL(Imm(5), h)
		MOVL(h, Mem{Base: rec, Disp: recHalf32 + 4*i})
	}

	Label("next")
	ADDQ(U32(actRecord), rec)
	ADDQ(U32(128), x)
	DECQ(groups)
	JNE(LabelRef("group"))
	VZEROUPPER()
	RET()

	Label("nan")
	none := YMM()
	VPXOR(none, none, none)
	VMOVDQU(none, Mem{Base: rec})
	VMOVDQU(none, Mem{Base: rec, Disp: 32})
	MOVL(U32(0x7fc00000), Mem{Base: rec, Disp: recScale})
	JMP(LabelRef("next"))
	Label("zero")
	VPXOR(none, none, none)
	VMOVDQU(none, Mem{Base: rec})
	VMOVDQU(none, Mem{Base: rec, Disp: 32})
	JMP(LabelRef("next"))
}

// packOrder undoes the interleaving of 128-bit lanes by the two packs.
func packOrder() Mem {
	m := GLOBL("packOrder", RODATA|NOPTR)
	for i, d := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
		DATA(4*i, U32(d))
	}
	return m
}
