package grouped

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
	"github.com/lutra-lm/lutra/kernels/_gen/ternary"
)

const unfoldSignature = "func(dst *byte, d *float32, stride int, codes *byte, scales *byte, factor *float32, fetch uintptr, groups int)"

// unfolding is a routine that makes ready what halves' tiles read of a band.
type unfolding struct {
	dst, d, stride, codes, scales, fetch, groups reg.Register
	lines                                        int
	factor                                       reg.VecVirtual
}

// unfold emits them, for each packing of levels. They are for all instruction sets: memory and
// the tiles take longer.
func unfold() {
	unfoldNL4()
	unfoldSuper("NL4K", 1)
	unfoldSuper("NL3K", 2)
}

func beginUnfold(packing, what string, lines int) *unfolding {
	name := "unfold" + packing + "AVX2"
	emit.Text(name, unfoldSignature)
	emit.Contract(name+" writes the scales of groups ≥ 1 groups of a band of "+packing+" times factor to d, two a",
		"group and row, stride bytes from half to half"+what+"; it prefetches",
		fmt.Sprintf("%d lines of 64 bytes a group from fetch on, which need not be memory at all.", lines))
	arg := func(name string) reg.Register { return Load(Param(name), GP64()) }
	u := &unfolding{d: arg("d"), stride: arg("stride"), scales: arg("scales"), fetch: arg("fetch"), lines: lines, groups: arg("groups")}
	u.factor = YMM()
	VBROADCASTSS(Mem{Base: arg("factor")}, u.factor)
	return u
}

// prefetch fetches as many bytes as a group has.
func (u *unfolding) prefetch() {
	for line := range u.lines {
		PREFETCHT1(Mem{Base: u.fetch, Disp: 64 * line})
	}
	ADDQ(U32(uint32(64*u.lines)), u.fetch)
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

func unfoldNL4() {
	u := beginUnfold("NL4", "", 5)
	Label("group")
	u.prefetch()
	for v := range vectors {
		d := u.scale(v)
		u.put(d, 0, v)
		u.put(d, 1, v)
	}
	u.next()
	ADDQ(U32(2*dense.BandRows), u.scales)
	DECQ(u.groups)
	JNE(LabelRef("group"))
	emit.Done()
}

// unfoldSuper generates the routine of superblocks with so many scales a group; of codes of
// three bits it makes those of four.
func unfoldSuper(packing string, each int) {
	what := ""
	if each == 2 {
		what = ", and its codes as nibbles to dst"
	}
	u := beginUnfold(packing, what, 6-each)
	var three *threeBits
	if each == 2 {
		three = newThreeBits()
	}
	Label("unit")
	d := []reg.VecVirtual{u.scale(0), u.scale(1)}
	ADDQ(U32(2*dense.BandRows), u.scales)
	left := GP64()
	MOVQ(U32(superGroups), left)
	Label("group")
	u.prefetch()
	for half := range each {
		for v := range vectors {
			sc := YMM()
			VPMOVSXBD(Mem{Base: u.scales, Disp: half*dense.BandRows + v*8}, sc)
			VCVTDQ2PS(sc, sc)
			VMULPS(d[v], sc, sc)
			u.put(sc, half, v)
			if each == 1 {
				u.put(sc, 1, v)
			}
		}
	}
	if each == 2 {
		three.group()
	}
	u.next()
	ADDQ(U32(uint32(each*dense.BandRows)), u.scales)
	DECQ(left)
	JNE(LabelRef("group"))
	SUBQ(Imm(superGroups), u.groups)
	JNE(LabelRef("unit"))
	emit.Done()
}

// threeBits joins pairs of low bits and single high ones.
type threeBits struct {
	codes, dst reg.Register
	pairs, bit reg.VecVirtual
}

func newThreeBits() *threeBits {
	t := &threeBits{codes: Load(Param("codes"), GP64()), dst: Load(Param("dst"), GP64()), pairs: YMM(), bit: YMM()}
	emit.FillLanes(0x33333333, t.pairs)
	emit.FillLanes(0x44444444, t.bit)
	return t
}

// group makes the nibbles of a group: kernels/grouped/grouped.go says where the bits lie.
func (t *threeBits) group() {
	for v := range vectors {
		bits := ternary.LoadY(Mem{Base: t.codes, Disp: 2*planeBytes + v*32})
		for half := range 2 {
			pairs := ternary.LoadY(Mem{Base: t.codes, Disp: half*planeBytes + v*32})
			for p := range 2 {
				low, high := YMM(), bits
				if p == 1 {
					VPSRLW(Imm(2), pairs, pairs)
				}
				VPAND(t.pairs, pairs, low)
				switch shift := 2*half - p; {
				case shift > 0:
					high = YMM()
					VPSLLW(Imm(uint64(shift)), bits, high)
				case shift < 0:
					high = YMM()
					VPSRLW(Imm(uint64(-shift)), bits, high)
				}
				top := YMM()
				VPAND(t.bit, high, top)
				VPOR(top, low, low)
				VMOVDQU(low, Mem{Base: t.dst, Disp: (2*half+p)*planeBytes + v*32})
			}
		}
	}
	ADDQ(U32(3*planeBytes), t.codes)
	ADDQ(U32(4*planeBytes), t.dst)
}
