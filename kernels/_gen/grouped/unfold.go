package grouped

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

const unfoldSignature = "func(d *float32, stride int, scales *byte, factor *float32, fetch uintptr, lines int, groups int)"

// unfolding is a routine that makes float32 scales that halves' tiles read of a band.
type unfolding struct {
	d, stride, scales, groups reg.Register
	factor                    reg.VecVirtual
	prefetch                  func()
}

// unfold emits them, for each packing whose sums of halves meet their scales apart. They are for
// all instruction sets: memory and the tiles take longer.
func unfold() {
	unfoldNL4()
	unfoldNL4K()
	unfoldNVFP4()
}

func beginUnfold(packing string) *unfolding {
	name := "unfold" + packing + "AVX2"
	emit.Text(name, unfoldSignature)
	unfoldings.Add(0, "matrix."+packing)
	emit.Contract(name+" writes the scales of groups ≥ 1 groups of a band of "+packing+" times factor to d, two a",
		"group and row, stride bytes from half to half; it prefetches",
		"lines ≥ 1 lines of 64 bytes a group from fetch on, which need not be memory at all.")
	arg := func(name string) reg.Register { return Load(Param(name), GP64()) }
	u := &unfolding{d: arg("d"), stride: arg("stride"), scales: arg("scales"), groups: arg("groups")}
	u.prefetch = prefetchLines(arg("fetch").(reg.GPVirtual))
	u.factor = YMM()
	VBROADCASTSS(Mem{Base: arg("factor")}, u.factor)
	return u
}

// scale gives float16 scales of vector v times the factor.
func (u *unfolding) scale(v int) reg.VecVirtual {
	d := YMM()
	VCVTPH2PS(Mem{Base: u.scales, Disp: v * 16}, d)
	VMULPS(u.factor, d, d)
	return d
}

// put writes the scales of a half, vector v.
func (u *unfolding) put(d reg.VecVirtual, half, v int) {
	at := Mem{Base: u.d, Disp: v * 32}
	if half == 1 {
		at.Index, at.Scale = u.stride, 1
	}
	VMOVUPS(d, at)
}

// next moves on to the next group's scales.
func (u *unfolding) next() { LEAQ(Mem{Base: u.d, Index: u.stride, Scale: 2}, u.d) }

// eachGroup runs scales for every group of groups, whose scales are of so many bytes.
func (u *unfolding) eachGroup(bytes int, groups reg.Register, scales func()) {
	Label("group")
	u.prefetch()
	scales()
	u.next()
	ADDQ(U32(uint32(bytes)), u.scales)
	DECQ(groups)
	JNE(LabelRef("group"))
}

func unfoldNL4() {
	u := beginUnfold("NL4")
	u.eachGroup(2*dense.BandRows, u.groups, func() {
		for v := range vectors {
			d := u.scale(v)
			u.put(d, 0, v)
			u.put(d, 1, v)
		}
	})
	emit.Done()
}

// unfoldNVFP4 generates that of scales of four bits of exponent and three of mantissa, which are
// the highest but one of a binary16 number 2⁻⁸ as large.
func unfoldNVFP4() {
	u := beginUnfold("NVFP4")
	u.eachGroup(2*dense.BandRows, u.groups, func() {
		for half := range 2 {
			for v := range vectors {
				bits, d := XMM(), YMM()
				VPMOVZXBW(Mem{Base: u.scales, Disp: half*dense.BandRows + v*8}, bits)
				VPSLLW(Imm(7), bits, bits)
				VCVTPH2PS(bits, d)
				VMULPS(u.factor, d, d)
				u.put(d, half, v)
			}
		}
	})
	emit.Done()
}

func unfoldNL4K() {
	u := beginUnfold("NL4K")
	Label("unit")
	d := []reg.VecVirtual{u.scale(0), u.scale(1)}
	ADDQ(U32(2*dense.BandRows), u.scales)
	left := GP64()
	MOVQ(U32(superGroups), left)
	u.eachGroup(dense.BandRows, left, func() {
		for v := range vectors {
			sc := YMM()
			VPMOVSXBD(Mem{Base: u.scales, Disp: v * 8}, sc)
			VCVTDQ2PS(sc, sc)
			VMULPS(d[v], sc, sc)
			u.put(sc, 0, v)
			u.put(sc, 1, v)
		}
	})
	SUBQ(Imm(superGroups), u.groups)
	JNE(LabelRef("unit"))
	emit.Done()
}
