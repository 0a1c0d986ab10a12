package vector

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// exponential holds the constants of exp(x) = 2ⁿ·p(r) with n = round(x/ln 2)
// and r = x - n·ln 2 taken off in two parts. p, of degree 6, has the least
// largest relative error for |r| ≤ ln 2/2 among those that begin with 1 + r:
// 3.1e-9, below the roundings.
type exponential struct {
	low, high  Op // where the result stays a normal number
	log2e      Op
	magic      Op // adding it leaves the rounded integer in the low bits
	ln2, ln2lo Op
	p          []Op // the highest power first
}

// InRegisters loads what emitNegative reads, bar the bound, into 10 registers.
func (e exponential) InRegisters() exponential {
	return e.loaded(func(m Op) Op {
		y := YMM()
		VMOVUPS(m, y)
		return y
	})
}

// Wide loads all that EmitNegative reads for vectors of 16.
func (e exponential) Wide() exponential {
	load := func(m Op) Op {
		z := ZMM()
		VBROADCASTSS(m, z)
		return z
	}
	e.low = load(e.low)
	return e.loaded(load)
}

func (e exponential) loaded(load func(Op) Op) exponential {
	e.log2e, e.magic, e.ln2, e.ln2lo = load(e.log2e), load(e.magic), load(e.ln2), load(e.ln2lo)
	p := make([]Op, len(e.p))
	for i, m := range e.p {
		if p[i] = load(m); i == len(p)-2 { // 1 + r
			p[i+1] = p[i]
			break
		}
	}
	e.p = p
	return e
}

func newExponential() exponential {
	e := exponential{
		low: FloatTable("expLow", -87.33654), high: FloatTable("expHigh", 88.37626),
		log2e: FloatTable("expLog2e", math.Log2E), magic: FloatTable("expMagic", 3<<22),
		ln2: FloatTable("expLn2", 0.693359375), ln2lo: FloatTable("expLn2lo", math.Ln2-0.693359375),
	}
	for i, c := range []float64{0.0013814550317899983, 0.008368747920656821, 0.04166839085079897, 0.16666520375995014, 0.49999993431098433, 1, 1} {
		e.p = append(e.p, FloatTable(fmt.Sprintf("expP%d", 6-i), c))
	}
	return e
}

// FloatTable emits a float32 for all lanes.
func FloatTable(name string, v float64) Mem {
	b := math.Float32bits(float32(v))
	return emit.Table(name, dwords(b, b, b, b, b, b, b, b))
}

// emit replaces x by exp(x), clamped to [2⁻¹²⁶, 2¹²⁷·√2); NaN stays NaN.
func (e exponential) emit(x reg.VecVirtual) {
	t := YMM()
	VMOVUPS(e.high, t)
	VMINPS(x, t, x) // with NaN the second operand, x, wins
	e.EmitNegative(x)
}

// EmitNegative emits for x that do not need the upper bound.
func (e exponential) EmitNegative(x reg.VecVirtual) {
	vector := YMM
	if x.Size() == 64 {
		vector = ZMM
	}
	n, t, p := vector(), vector(), vector()
	Comment("clamped to the normal range; with NaN the second operand, x, wins")
	VMOVUPS(e.low, n)
	VMAXPS(x, n, x)
	Comment("x = n·ln2 + r")
	VMOVUPS(e.log2e, t)
	VFMADD213PS(e.magic, x, t)
	VSUBPS(e.magic, t, n)
	VFNMADD231PS(e.ln2, n, x)
	VFNMADD231PS(e.ln2lo, n, x)
	Comment("p(r), then n into the exponent")
	VMOVUPS(e.p[0], p)
	for _, c := range e.p[1:] {
		VFMADD213PS(c, x, p)
	}
	VPSLLD(Imm(23), t, t)
	VPADDD(t, p, x)
}

// tailMask gives the table of masks for the first 1 to 7 lanes: the mask of n
// lanes starts 4n bytes before its middle.
func tailMask() Mem {
	ones := ^uint32(0)
	return emit.Table("tailMask", dwords(ones, ones, ones, ones, ones, ones, ones, ones, 0, 0, 0, 0, 0, 0, 0, 0))
}

var (
	expConstants *exponential
	Tail         Mem
)

func ExpTables() exponential {
	if expConstants == nil {
		e := newExponential()
		expConstants, Tail = &e, tailMask()
	}
	return *expConstants
}

// masked runs body over n > 0 elements, eight at a time, the last time with a
// mask of the lanes that exist. load and store work on the current eight.
func masked(n reg.Register, pointers []reg.Register, body func(load func(p reg.Register, v reg.VecVirtual), store func(v reg.VecVirtual, p reg.Register), mask reg.VecVirtual)) {
	SUBQ(Imm(8), n)
	JL(LabelRef("tail"))
	Label("loop")
	body(func(p reg.Register, v reg.VecVirtual) { VMOVUPS(Mem{Base: p}, v) },
		func(v reg.VecVirtual, p reg.Register) { VMOVUPS(v, Mem{Base: p}) }, nil)
	for _, p := range pointers {
		ADDQ(Imm(32), p)
	}
	SUBQ(Imm(8), n)
	JGE(LabelRef("loop"))
	Label("tail")
	ADDQ(Imm(8), n)
	JE(LabelRef("end"))
	Comment("the mask of n lanes")
	mask, base := YMM(), GP64()
	LEAQ(Tail.Offset(32), base)
	NEGQ(n)
	VMOVUPS(Mem{Base: base, Index: n, Scale: 4}, mask)
	body(func(p reg.Register, v reg.VecVirtual) { VMASKMOVPS(Mem{Base: p}, mask, v) },
		func(v reg.VecVirtual, p reg.Register) { VMASKMOVPS(v, mask, Mem{Base: p}) }, mask)
	Label("end")
}

func expSum() {
	e := ExpTables()
	emit.Text("vecExpSum", "func(dst *float32, x *float32, shift float32, n int) float32")
	emit.Contract("vecExpSum sets dst[i] = exp(x[i] - shift), 0 below the normal numbers, for n > 0 and returns the sum, lane i%8 by lane.")
	dst, x, n := emit.Arg("dst"), emit.Arg("x"), emit.Arg("n")
	s := XMM()
	Load(Param("shift"), s)
	shift, sum := YMM(), YMM()
	VBROADCASTSS(s, shift)
	emit.ZeroY(sum)
	masked(n, []reg.Register{dst, x}, func(load func(reg.Register, reg.VecVirtual), store func(reg.VecVirtual, reg.Register), mask reg.VecVirtual) {
		v, small := YMM(), YMM()
		load(x, v)
		VSUBPS(shift, v, v)
		Comment("lanes below the range become 0; not-less-than keeps NaN")
		VCMPPS(Imm(5), e.low, v, small)
		e.emit(v)
		VANDPS(small, v, v)
		store(v, dst)
		if mask != nil {
			VANDPS(mask, v, v)
		}
		VADDPS(v, sum, sum)
	})
	Store(SumLanes(sum), ReturnIndex(0))
	emit.Done()
}

// gate is what a gated unit makes of its gate.
type gate int

const (
	silu gate = iota
	sigmoid
	gelu
	clamped
)

// gated emits dst = g·sigmoid(a(g))·up with a(g) = g, or for GELU its cubic; for the
// sigmoid without g; for clamped units with bounds, a(g) = 1.702·g and up + 1.
func gated(name string, kind gate) {
	e := ExpTables()
	one := FloatTable(name+"One", 1)
	sign := emit.Table(name+"Sign", dwords(1<<31, 1<<31, 1<<31, 1<<31, 1<<31, 1<<31, 1<<31, 1<<31))
	arg, cube := Mem{}, Mem{}
	if kind == gelu {
		arg, cube = FloatTable(name+"Arg", 1.5957691216057308), FloatTable(name+"Cube", 0.044715)
	}
	least, most := Mem{}, Mem{}
	if kind == clamped {
		arg, least, most = FloatTable(name+"Arg", 1.702), FloatTable(name+"Least", -7), FloatTable(name+"Most", 7)
	}
	emit.Text(name, "func(dst *float32, gate *float32, up *float32, n int)")
	emit.Contract(name + " sets dst[i] = act(gate[i])·up[i] for n > 0.")
	dst, gate, up, n := emit.Arg("dst"), emit.Arg("gate"), emit.Arg("up"), emit.Arg("n")
	masked(n, []reg.Register{dst, gate, up}, func(load func(reg.Register, reg.VecVirtual), store func(reg.VecVirtual, reg.Register), _ reg.VecVirtual) {
		g, u, x := YMM(), YMM(), YMM()
		load(gate, g)
		load(up, u)
		switch kind {
		case clamped:
			Comment("with NaN the second operand, g or u, wins")
			VMOVUPS(most, x)
			VMINPS(g, x, g)
			VMINPS(u, x, u)
			VMOVUPS(least, x)
			VMAXPS(u, x, u)
			VADDPS(one, u, u)
			VMULPS(g, u, u)
			VMULPS(arg, g, x)
			VXORPS(sign, x, x)
		case gelu:
			Comment("√(8/π)·(g + 0.044715·g³)")
			VMULPS(g, g, x)
			VMULPS(cube, x, x)
			VFMADD213PS(g, g, x)
			VMULPS(arg, x, x)
			VXORPS(sign, x, x)
		default:
			VXORPS(sign, g, x)
		}
		e.emit(x)
		VADDPS(one, x, x)
		if kind == sigmoid || kind == clamped {
			VDIVPS(x, u, u)
			store(u, dst)
			return
		}
		VDIVPS(x, g, g)
		VMULPS(u, g, g)
		store(g, dst)
	})
	emit.Done()
}
