package vector

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// sumWithin emits the sum and the number of the elements in a range.
func sumWithin() {
	const above, upTo = 0x1e, 0x12 // ordered comparisons: false for NaN
	emit.Text("vecSumWithin", "func(part *[16]float32, x *float32, lo float32, hi float32, n int) int")
	emit.Contract("vecSumWithin sets part[j] to the sum of the x[16i+j] above lo and up to hi, for a positive multiple n",
		"of 16, and returns how many they are.")
	part, x, n := emit.Arg("part"), emit.Arg("x"), emit.Arg("n")
	bound := func(name string) reg.VecVirtual {
		s, v := XMM(), YMM()
		Load(Param(name), s)
		VBROADCASTSS(s, v)
		return v
	}
	lo, hi := bound("lo"), bound("hi")
	sums, count := []reg.VecVirtual{YMM(), YMM()}, YMM()
	for _, v := range append(sums, count) {
		emit.ZeroY(v)
	}
	Label("loop")
	for r, sum := range sums {
		v, in, low := YMM(), YMM(), YMM()
		VMOVUPS(Mem{Base: x, Disp: 32 * r}, v)
		VCMPPS(Imm(above), lo, v, in)
		VCMPPS(Imm(upTo), hi, v, low)
		VANDPS(low, in, in)
		VPSUBD(in, count, count)
		VANDPS(in, v, v)
		VADDPS(v, sum, sum)
	}
	ADDQ(Imm(64), x)
	SUBQ(Imm(16), n)
	JNE(LabelRef("loop"))
	for r, sum := range sums {
		VMOVUPS(sum, Mem{Base: part, Disp: 32 * r})
	}
	Comment("eight counts to one")
	c, t := XMM(), XMM()
	VEXTRACTI128(Imm(1), count, c)
	VPADDD(count.AsX(), c, c)
	VPSHUFD(Imm(0x4e), c, t)
	VPADDD(t, c, c)
	VPSHUFD(Imm(0xb1), c, t)
	VPADDD(t, c, c)
	total := GP32()
	VMOVD(c, total)
	Store(total.As64(), ReturnIndex(0))
	emit.Done()
}
