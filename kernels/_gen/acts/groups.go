package acts

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// ActRecord is the size of an activation record.
const ActRecord = 64

// Offsets in an activation record.
const (
	RecScale    = 32
	RecSum      = 36
	RecStart4   = 40 // int16 pair
	RecSum8     = 44 // -8·Σq
	RecStart6   = 48 // two int16 pairs, of what is limited; else:
	RecMagic8   = 48 // the bits of 1.5·2²³, less 8·Σq
	RecMagic128 = 52 // less 128·Σq
	RecHalf32   = 56 // -32·Σq of each half
)

// quantize generates the AVX2 routine that makes activation records.
func quantize() {
	emit.Text("quantizeGroupsAVX2", "func(rec *byte, x *float32, groups int, mostHalf int, flat float32)")
	emit.Contract("quantizeGroupsAVX2 writes the records of groups ≥ 1 whole groups of 32 values,",
		"whose codes of half a group are at most mostHalf together; 16·127 is no limit.",
		"flat is what Σ|q| of half a group is divided by where it is too large.")
	rec := Load(Param("rec"), GP64())
	x := Load(Param("x"), GP64())
	groups := Load(Param("groups"), GP64())
	mostHalf := Load(Param("mostHalf"), GP64())
	abs, ones8, ones16, order, scale127 := YMM(), YMM(), YMM(), YMM(), XMM()
	emit.FillLanes(0x7fffffff, abs)
	emit.FillLanes(0x01010101, ones8)
	emit.FillLanes(0x00010001, ones16)
	VMOVDQU(groupOrder(), order)
	t := GP32()
	MOVL(U32(0x42fe0000), t) // 127
	VMOVD(t, scale127)
	flat := Load(Param("flat"), XMM())

	Label("group")
	Comment("top = largest |x|, compared as integers, in every lane")
	top, m := YMM(), YMM()
	VPAND(Mem{Base: x}, abs, top)
	for i := 1; i < 4; i++ {
		VPAND(Mem{Base: x, Disp: 32 * i}, abs, m)
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

	most := XMM()
	VMOVAPS(scale127, most)
	Label("codes")
	Comment("codes = round(x·(most/top))")
	inv, d := XMM(), XMM()
	VDIVSS(top.AsX(), most, inv)
	VDIVSS(most, top.AsX(), d)
	invs := YMM()
	VBROADCASTSS(inv, invs)
	v := make([]reg.VecVirtual, 4)
	for i := range v {
		v[i] = YMM()
		VMULPS(Mem{Base: x, Disp: 32 * i}, invs, v[i])
		VCVTPS2DQ(v[i], v[i])
	}
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	VPACKSSWB(v[2], v[0], v[0])
	VPERMD(v[0], order, v[0])

	Comment("a half of too large codes: all anew with a smaller most")
	sizes, zero := YMM(), YMM()
	VPXOR(zero, zero, zero)
	VPABSB(v[0], sizes)
	VPSADBW(zero, sizes, sizes)
	VPSHUFD(Imm(0x4e), sizes, m)
	VPADDD(m, sizes, sizes)
	VEXTRACTI128(Imm(1), sizes, m.AsX())
	VPMAXSD(m, sizes, sizes)
	half := GP32()
	VMOVD(sizes.AsX(), half)
	CMPL(half, mostHalf.(reg.GPVirtual).As32())
	JGT(LabelRef("flat"))
	VMOVDQU(v[0], Mem{Base: rec})
	VMOVSS(d, Mem{Base: rec, Disp: RecScale})

	Comment("int16 sums of columns k%4 < 2 and k%4 >= 2 of each half, a dword a half")
	pairs, halves := YMM(), YMM()
	VPMADDUBSW(v[0], ones8, pairs)
	VPSHUFD(Imm(0x4e), pairs, m)
	VPADDW(m, pairs, pairs)
	VPSHUFD(Imm(0xb1), pairs, m)
	VPADDW(m, pairs, pairs)
	VPMADDWD(ones16, pairs, halves)
	CMPL(mostHalf.(reg.GPVirtual).As32(), U32(16*127))
	JE(LabelRef("sums"))
	VPSLLW(Imm(5), pairs, pairs)
	VPSUBW(pairs, zero, pairs)
	VMOVD(pairs.AsX(), Mem{Base: rec, Disp: RecStart6})
	VEXTRACTI128(Imm(1), pairs, pairs.AsX())
	VMOVD(pairs.AsX(), Mem{Base: rec, Disp: RecStart6 + 4})

	Label("sums")
	Comment("sums of the halves and of the group")
	lo, hi := GP32(), GP32()
	VMOVD(halves.AsX(), lo)
	VEXTRACTI128(Imm(1), halves, halves.AsX())
	VMOVD(halves.AsX(), hi)
	sum, f := GP32(), XMM()
	LEAL(Mem{Base: lo, Index: hi, Scale: 1}, sum)
	VPXOR(f, f, f)
	VCVTSI2SSL(sum, f, f)
	VMOVSS(f, Mem{Base: rec, Disp: RecSum})
	NEGL(sum)
	SHLL(Imm(2), sum)
	MOVW(sum.As16(), Mem{Base: rec, Disp: RecStart4})
	MOVW(sum.As16(), Mem{Base: rec, Disp: RecStart4 + 2})
	SHLL(Imm(1), sum)
	MOVL(sum, Mem{Base: rec, Disp: RecSum8})
	CMPL(mostHalf.(reg.GPVirtual).As32(), U32(16*127))
	JNE(LabelRef("halves"))
	Comment("no limit: what sums start from that become float32 as they are")
	magic := GP32()
	LEAL(Mem{Base: sum, Disp: 0x4b400000}, magic)
	MOVL(magic, Mem{Base: rec, Disp: RecMagic8})
	SHLL(Imm(4), sum)
	ADDL(U32(0x4b400000), sum)
	MOVL(sum, Mem{Base: rec, Disp: RecMagic128})
	Label("halves")
	for i, h := range []reg.GPVirtual{lo, hi} {
		NEGL(h)
		SHLL(Imm(5), h)
		MOVL(h, Mem{Base: rec, Disp: RecHalf32 + 4*i})
	}

	Label("next")
	ADDQ(U32(ActRecord), rec)
	ADDQ(U32(128), x)
	DECQ(groups)
	JNE(LabelRef("group"))
	VZEROUPPER()
	RET()

	Label("flat")
	Comment("most = flat / half, whole: of float32 the quotient is never rounded up to a whole number")
	VMOVAPS(flat, most)
	VCVTSI2SSL(half, sizes.AsX(), sizes.AsX())
	VDIVSS(sizes.AsX(), most, most)
	VROUNDSS(Imm(3), most, most, most)
	JMP(LabelRef("codes"))

	Label("nan")
	none := YMM()
	VPXOR(none, none, none)
	VMOVDQU(none, Mem{Base: rec})
	VMOVDQU(none, Mem{Base: rec, Disp: 32})
	MOVL(U32(0x7fc00000), Mem{Base: rec, Disp: RecScale})
	JMP(LabelRef("next"))
	Label("zero")
	VPXOR(none, none, none)
	VMOVDQU(none, Mem{Base: rec})
	VMOVDQU(none, Mem{Base: rec, Disp: 32})
	JMP(LabelRef("next"))
}

// groupOrder undoes the interleaving of 128-bit lanes by the two packs.
func groupOrder() Mem {
	m := GLOBL("groupOrder", RODATA|NOPTR)
	for i, d := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
		DATA(4*i, U32(d))
	}
	return m
}
