// Package vector emits the kernels of kernels/vector.
package vector

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Kernels emits element-wise and reducing primitives over float32 slices, in
// AVX2. Those without a tail of their own want n to be a multiple of 8.
func Kernels() {
	elementwise("vecAdd", 2, false, "dst[i] = a[i] + b[i]", func(x []reg.VecVirtual, _ reg.VecVirtual) { VADDPS(x[1], x[0], x[0]) })
	elementwise("vecMul", 2, false, "dst[i] = a[i]·b[i]", func(x []reg.VecVirtual, _ reg.VecVirtual) { VMULPS(x[1], x[0], x[0]) })
	elementwise("vecScale", 1, true, "dst[i] = a[i]·s", func(x []reg.VecVirtual, s reg.VecVirtual) { VMULPS(s, x[0], x[0]) })
	elementwise("vecAxpy", 2, true, "dst[i] = a[i] + s·b[i]", func(x []reg.VecVirtual, s reg.VecVirtual) { VFMADD231PS(s, x[1], x[0]) })
	elementwise("vecMulAdd", 3, false, "dst[i] = a[i] + b[i]·c[i]", func(x []reg.VecVirtual, _ reg.VecVirtual) { VFMADD231PS(x[2], x[1], x[0]) })
	elementwise("vecScaleMul", 2, true, "dst[i] = a[i]·s·b[i]", func(x []reg.VecVirtual, s reg.VecVirtual) {
		VMULPS(s, x[0], x[0])
		VMULPS(x[1], x[0], x[0])
	})
	elementwise("vecReLU2", 2, false, "dst[i] = max(a[i], 0)²·b[i]", func(x []reg.VecVirtual, _ reg.VecVirtual) {
		z := YMM()
		emit.ZeroY(z)
		VMAXPS(x[0], z, x[0]) // the second operand wins against NaN: here x
		VMULPS(x[0], x[0], x[0])
		VMULPS(x[1], x[0], x[0])
	})
	dotProduct()
	sumSquares()
	extreme("vecMax", "the largest of x[n]", false)
	extreme("vecAbsMax", "the largest |x[i]| of x[n]", true)
	narrow()
	expSum()
	gated("vecSwiGLU", silu)
	gated("vecGLU", sigmoid)
	gated("vecGeGLU", gelu)
	gated("vecClampedGLU", clamped)
	ropePairs()
	ropeHalves()
	sumWithin()
	hadamard8()
	butterfly()
}

// elementwise emits dst[n] = f(inputs...), n a positive multiple of 8.
func elementwise(name string, inputs int, scalar bool, what string, f func(x []reg.VecVirtual, s reg.VecVirtual)) {
	sig, s := "dst *float32, a *float32", ""
	for _, more := range []string{"b", "c"}[:inputs-1] {
		sig += ", " + more + " *float32"
	}
	if scalar {
		s = ", s float32"
	}
	emit.Text(name, "func("+sig+s+", n int)")
	emit.Contract(fmt.Sprintf("%s sets %s for a positive multiple n of 8.", name, what))
	dst, in := emit.Arg("dst"), []reg.Register{emit.Arg("a")}
	for _, more := range []string{"b", "c"}[:inputs-1] {
		in = append(in, emit.Arg(more))
	}
	n := emit.Arg("n")
	sv := YMM()
	if scalar {
		x := XMM()
		Load(Param("s"), x)
		VBROADCASTSS(x, sv)
	}
	i := GP64()
	XORQ(i, i)
	at := func(p reg.Register, disp int) Mem { return Mem{Base: p, Index: i, Scale: 4, Disp: disp} }
	body := func(regs int) {
		x := make([][]reg.VecVirtual, regs)
		for r := range x {
			for _, p := range in {
				v := YMM()
				VMOVUPS(at(p, 32*r), v)
				x[r] = append(x[r], v)
			}
		}
		for r := range x {
			f(x[r], sv)
			VMOVUPS(x[r][0], at(dst, 32*r))
		}
		ADDQ(Imm(uint64(8*regs)), i)
	}
	SUBQ(Imm(32), n)
	JL(LabelRef("rest"))
	Label("loop")
	body(4)
	CMPQ(i, n)
	JLE(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(32), n)
	Label("check")
	CMPQ(i, n)
	JGE(LabelRef("end"))
	body(1)
	JMP(LabelRef("check"))
	Label("end")
	emit.Done()
}

func dotProduct() {
	emit.Text("vecDot", "func(a *float32, b *float32, n int) float32")
	emit.Contract("vecDot is Σ a[i]·b[i] for a positive multiple n of 32.")
	a, b, n := emit.Arg("a"), emit.Arg("b"), emit.Arg("n")
	acc := YMMs(4)
	Label("loop")
	for i := range acc {
		v := YMM()
		VMOVUPS(Mem{Base: a, Disp: 32 * i}, v)
		VFMADD231PS(Mem{Base: b, Disp: 32 * i}, v, acc[i])
	}
	ADDQ(U32(128), a)
	ADDQ(U32(128), b)
	SUBQ(Imm(32), n)
	JNE(LabelRef("loop"))
	VADDPS(acc[1], acc[0], acc[0])
	VADDPS(acc[3], acc[2], acc[2])
	VADDPS(acc[2], acc[0], acc[0])
	Store(SumLanes(acc[0]), ReturnIndex(0))
	emit.Done()
}

// YMMs makes n cleared registers.
func YMMs(n int) []reg.VecVirtual {
	r := BlankYMMs(n)
	for i := range r {
		emit.ZeroY(r[i])
	}
	return r
}

// BlankYMMs returns n registers that hold nothing yet.
func BlankYMMs(n int) []reg.VecVirtual {
	r := make([]reg.VecVirtual, n)
	for i := range r {
		r[i] = YMM()
	}
	return r
}

// SumLanes adds the lanes of y: i with i+4, then with i+2, then with i+1.
func SumLanes(y reg.VecVirtual) reg.VecVirtual {
	x := XMM()
	VEXTRACTF128(Imm(1), y, x)
	VADDPS(x, y.AsX(), x)
	t := XMM()
	VMOVHLPS(x, x, t)
	VADDPS(t, x, x)
	VMOVSHDUP(x, t)
	VADDSS(t, x, x)
	return x
}

func sumSquares() {
	emit.Text("vecSumSquares", "func(x *float32, n int) float64")
	emit.Contract("vecSumSquares is Σ x[i]² in float64 for a positive multiple n of 16.")
	x, n := emit.Arg("x"), emit.Arg("n")
	acc := YMMs(4)
	Label("loop")
	for i := range acc {
		v := YMM()
		VCVTPS2PD(Mem{Base: x, Disp: 16 * i}, v)
		VFMADD231PD(v, v, acc[i])
	}
	ADDQ(Imm(64), x)
	SUBQ(Imm(16), n)
	JNE(LabelRef("loop"))
	VADDPD(acc[1], acc[0], acc[0])
	VADDPD(acc[3], acc[2], acc[2])
	VADDPD(acc[2], acc[0], acc[0])
	s, t := XMM(), XMM()
	VEXTRACTF128(Imm(1), acc[0], s)
	VADDPD(acc[0].AsX(), s, s)
	VUNPCKHPD(s, s, t)
	VADDSD(t, s, s)
	Store(s, ReturnIndex(0))
	emit.Done()
}

func extreme(name, what string, abs bool) {
	emit.Text(name, "func(x *float32, n int) float32")
	emit.Contract(fmt.Sprintf("%s is %s for a positive multiple n of 8; NaNs are passed over.", name, what))
	x, n := emit.Arg("x"), emit.Arg("n")
	m, v, mask := YMM(), YMM(), YMM()
	if abs {
		emit.FillLanes(0x7fffffff, mask)
		emit.ZeroY(m)
	} else {
		emit.FillLanes(math.Float32bits(float32(math.Inf(-1))), m)
	}
	Label("loop")
	VMOVUPS(Mem{Base: x}, v)
	if abs {
		VANDPS(mask, v, v)
	}
	VMAXPS(m, v, m) // the second operand, m, wins against NaN
	ADDQ(Imm(32), x)
	SUBQ(Imm(8), n)
	JNE(LabelRef("loop"))
	s, t := XMM(), XMM()
	VEXTRACTF128(Imm(1), m, s)
	VMAXPS(m.AsX(), s, s)
	VMOVHLPS(s, s, t)
	VMAXPS(t, s, s)
	VMOVSHDUP(s, t)
	VMAXSS(t, s, s)
	Store(s, ReturnIndex(0))
	emit.Done()
}

// narrow emits the conversion to binary16.
func narrow() {
	emit.Text("vecF32ToF16", "func(dst *uint16, src *float32, n int)")
	emit.Contract("vecF32ToF16 narrows a positive multiple n of 8 values to nearest even.")
	dst, src, n := emit.Arg("dst"), emit.Arg("src"), emit.Arg("n")
	v := YMM()
	Label("loop")
	VMOVUPS(Mem{Base: src}, v)
	VCVTPS2PH(Imm(0), v, Mem{Base: dst})
	ADDQ(Imm(32), src)
	ADDQ(Imm(16), dst)
	SUBQ(Imm(8), n)
	JNE(LabelRef("loop"))
	emit.Done()
}

// ropePairs rotates adjacent pairs, four at a time.
func ropePairs() {
	emit.Text("vecRopePairs", "func(x *float32, cos *float32, sin *float32, pairs int)")
	emit.Contract("vecRopePairs rotates the pairs (x[2i], x[2i+1]) by the angles of cos[i] and sin[i], a positive multiple of 4 of them.")
	x, cos, sin, n := emit.Arg("x"), emit.Arg("cos"), emit.Arg("sin"), emit.Arg("pairs")
	twice := YMM()
	VMOVDQU(emit.Table("twice", dwords(0, 0, 1, 1, 2, 2, 3, 3)), twice)
	Label("loop")
	v, c, s, t := YMM(), YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: x}, v)
	VMOVUPS(Mem{Base: cos}, c.AsX())
	VMOVUPS(Mem{Base: sin}, s.AsX())
	VPERMPS(c, twice, c)
	VPERMPS(s, twice, s)
	VPERMILPS(Imm(0xb1), v, t)
	VMULPS(s, t, t)
	Comment("even lanes x₀·cos - x₁·sin, odd ones x₁·cos + x₀·sin")
	VFMADDSUB213PS(t, c, v)
	VMOVUPS(v, Mem{Base: x})
	ADDQ(Imm(32), x)
	ADDQ(Imm(16), cos)
	ADDQ(Imm(16), sin)
	SUBQ(Imm(4), n)
	JNE(LabelRef("loop"))
	emit.Done()
}

func ropeHalves() {
	emit.Text("vecRopeHalves", "func(lo *float32, hi *float32, cos *float32, sin *float32, pairs int)")
	emit.Contract("vecRopeHalves rotates the pairs (lo[i], hi[i]) by the angles of cos[i] and sin[i], a positive multiple of 8 of them.")
	lo, hi, cos, sin, n := emit.Arg("lo"), emit.Arg("hi"), emit.Arg("cos"), emit.Arg("sin"), emit.Arg("pairs")
	Label("loop")
	a, b, c, s, t := YMM(), YMM(), YMM(), YMM(), YMM()
	VMOVUPS(Mem{Base: lo}, a)
	VMOVUPS(Mem{Base: hi}, b)
	VMOVUPS(Mem{Base: cos}, c)
	VMOVUPS(Mem{Base: sin}, s)
	VMULPS(s, b, t)
	VMULPS(s, a, s)
	VFMSUB213PS(t, c, a)
	VFMADD213PS(s, c, b)
	VMOVUPS(a, Mem{Base: lo})
	VMOVUPS(b, Mem{Base: hi})
	for _, p := range []reg.Register{lo, hi, cos, sin} {
		ADDQ(Imm(32), p)
	}
	SUBQ(Imm(8), n)
	JNE(LabelRef("loop"))
	emit.Done()
}

// dwords makes little-endian 32-bit constants.
func dwords(v ...uint32) []byte {
	return emit.Fill(4*len(v), func(i int) byte { return byte(v[i/4] >> (8 * (i % 4))) })
}
