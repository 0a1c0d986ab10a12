package vector

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// hadamard8 emits the three first levels of a Walsh-Hadamard transform, which
// stay within a register.
func hadamard8() {
	const minus = uint32(1) << 31
	signs := []Mem{
		emit.Table("hadamardSign1", dwords(0, minus, 0, minus, 0, minus, 0, minus)),
		emit.Table("hadamardSign2", dwords(0, 0, minus, minus, 0, 0, minus, minus)),
		emit.Table("hadamardSign4", dwords(0, 0, 0, 0, minus, minus, minus, minus)),
	}
	emit.Text("vecHadamard8", "func(x *float32, n int)")
	emit.Contract("vecHadamard8 transforms each eight of x[n], n a positive multiple of 8.")
	x, n := emit.Arg("x"), emit.Arg("n")
	s1, s2, s4 := YMM(), YMM(), YMM()
	VMOVUPS(signs[0], s1)
	VMOVUPS(signs[1], s2)
	VMOVUPS(signs[2], s4)
	Label("loop")
	a, b, c := YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: x}, a)
	Comment("pairs one apart: the first, twice, and the second with both signs")
	VMOVSLDUP(a, b)
	VMOVSHDUP(a, c)
	VXORPS(s1, c, c)
	VADDPS(c, b, a)
	Comment("two apart")
	VPERMILPS(Imm(0x44), a, b)
	VPERMILPS(Imm(0xee), a, c)
	VXORPS(s2, c, c)
	VADDPS(c, b, a)
	Comment("four apart")
	VPERM2F128(Imm(0x00), a, a, b)
	VPERM2F128(Imm(0x11), a, a, c)
	VXORPS(s4, c, c)
	VADDPS(c, b, a)
	VMOVUPS(a, Mem{Base: x})
	ADDQ(Imm(32), x)
	SUBQ(Imm(8), n)
	JNE(LabelRef("loop"))
	emit.Done()
}

// butterfly emits a later level.
func butterfly() {
	emit.Text("vecButterfly", "func(lo *float32, hi *float32, n int)")
	emit.Contract("vecButterfly sets lo[i], hi[i] = lo[i] + hi[i], lo[i] - hi[i] for a positive multiple n of 8.")
	lo, hi, n := emit.Arg("lo"), emit.Arg("hi"), emit.Arg("n")
	Label("loop")
	a, b, sum := YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: lo}, a)
	VMOVUPS(Mem{Base: hi}, b)
	VADDPS(b, a, sum)
	VSUBPS(b, a, a)
	VMOVUPS(sum, Mem{Base: lo})
	VMOVUPS(a, Mem{Base: hi})
	ADDQ(Imm(32), lo)
	ADDQ(Imm(32), hi)
	SUBQ(Imm(8), n)
	JNE(LabelRef("loop"))
	emit.Done()
}
