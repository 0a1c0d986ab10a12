package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// AVX2 multiply-add. Trits enter VPMADDUBSW as digits 0..2; a pair of products
// is at most 2·2·127 = 508, so 64 of them (16 blocks of I2, 12 of I1) fit int16.

const (
	stripRows  = 64
	stripBytes = 4 * stripRows // one block
	prefetch   = 8192
)

func ternaryMAD() {
	for _, g := range []int{4, 5} {
		u := newUnpacker(g)
		madStream(u)
		madUnpack(u)
	}
	ones := table("tileOnes", words(16, 1))
	for _, n := range []int{1, 2, 4} {
		madTile(ones, n)
	}
	madFinish()
}

// unpacker splits 32 bytes into planes of digits. Crumbs are shifted and masked.
// For base 3, bytes have no multiply: each half of a 16-bit lane is divided by 27
// as the high part of a 16-bit product, and VPSHUFB tables over 0..8 give two
// digits each.
type unpacker struct {
	g                                 int
	by, even, eight, seventeen        Mem // constants
	units, threes, nines, twentySeven Mem // tables over 0..8
	ones, three                       Mem
}

func newUnpacker(g int) *unpacker {
	t := func(name string, f func(i int) int) Mem {
		return table(fmt.Sprintf("%s%d", name, g), repeat16(fill(16, func(i int) byte {
			if i > 8 {
				return 0
			}
			return byte(f(i))
		})))
	}
	c := func(name string, b []byte) Mem { return table(fmt.Sprintf("%s%d", name, g), b) }
	u := &unpacker{g: g, ones: c("ones", words(16, 1))}
	if g == 4 {
		u.three = c("three", fill(32, func(int) byte { return 3 }))
		return u
	}
	u.even = c("even", words(16, 0x00ff))
	u.units = t("units", func(i int) int { return i % 3 })
	u.threes = t("threes", func(i int) int { return i / 3 })
	u.nines = t("nines", func(i int) int { return 9 * i })
	u.by = c("by27x", words(16, 2428)) // x·2428>>16 = x/27 for x <= 242
	u.eight = c("eight", fill(32, func(int) byte { return 8 }))
	u.seventeen = c("seventeen", fill(32, func(int) byte { return 17 }))
	u.twentySeven = t("twentySeven", func(i int) int { return 27 * i })
	return u
}

// unpackRegs are the constants held in registers.
type unpackRegs struct{ three, by, even, eight, seventeen, units, threes, nines, twentySeven reg.VecVirtual }

func (u *unpacker) load() unpackRegs {
	get := func(m Mem) reg.VecVirtual {
		y := YMM()
		VMOVDQU(m, y)
		return y
	}
	if u.g == 4 {
		return unpackRegs{three: get(u.three)}
	}
	return unpackRegs{by: get(u.by), even: get(u.even), units: get(u.units), threes: get(u.threes), nines: get(u.nines),
		twentySeven: get(u.twentySeven), eight: get(u.eight), seventeen: get(u.seventeen)}
}

// planes calls use with the digits of each trit position of the bytes at m.
func (u *unpacker) planes(t unpackRegs, m Mem, use func(j int, plane reg.VecVirtual)) {
	lo, hi, p := YMM(), YMM(), YMM()
	pick := func(j int, tab, idx reg.VecVirtual) {
		VPSHUFB(idx, tab, p)
		use(j, p)
	}
	VMOVDQU(m, lo)
	if u.g == 4 {
		VPAND(t.three, lo, p)
		use(0, p)
		for j := 1; j < 4; j++ {
			VPSRLW(Imm(2), lo, lo)
			VPAND(t.three, lo, p)
			use(j, p)
		}
		return
	}
	Comment("32 indices: divide, look digits up, multiply")
	// The quotients of odd bytes come out in place, those of even bytes from a second product.
	VPAND(t.even, lo, p)
	VPANDN(lo, t.even, hi)
	VPMULHUW(t.by, hi, hi)
	VPMULHUW(t.by, p, p)
	VPBLENDVB(t.even, p, hi, hi)
	VPSHUFB(hi, t.twentySeven, p)
	VPSUBB(p, lo, lo)
	pick(3, t.units, hi)
	pick(4, t.threes, hi)
	Comment("lo is 0..26 now; its ninths are counted by comparing")
	VPCMPGTB(t.eight, lo, hi)
	VPCMPGTB(t.seventeen, lo, p)
	VPADDB(p, hi, hi)
	VPABSB(hi, hi)
	VPSHUFB(hi, t.nines, p)
	VPSUBB(p, lo, lo)
	use(2, hi)
	pick(0, t.units, lo)
	pick(1, t.threes, lo)
}

// madStream is the product of a strip with one token, at the speed weights
// arrive. A few blocks are taken twice, 32 rows at a time, so that constants
// and sums fit the registers; the second time they are in L1.
func madStream(u *unpacker) {
	const rm = 4 // registers of 8 rows
	text(fmt.Sprintf("madStream%dAVX2", u.g), "func(w *byte, act *int8, blocks int, acc *int32)")
	contract(fmt.Sprintf("madStream%dAVX2 adds to acc[64] the digits of a strip times one token's quads [block][%d][4].", u.g, u.g),
		"blocks is positive.")
	w, act, blocks, acc := param("w"), param("act"), param("blocks"), param("acc")
	t := u.load()
	var sum [rm]reg.VecVirtual
	for r := range sum {
		sum[r] = YMM()
	}
	count := GP64()
	Label("chunk")
	Comment("As many blocks as int16 sums have room for")
	MOVQ(U32(uint32(64/u.g)), count)
	CMPQ(blocks, count)
	CMOVQLT(blocks, count)
	SUBQ(count, blocks)
	a, n := GP64(), GP64()
	for half := range 2 {
		loop := fmt.Sprintf("half%d", half)
		MOVQ(act, a)
		MOVQ(count, n)
		for r := range sum {
			zeroY(sum[r])
		}
		Label(loop)
		for line := range 2 {
			PREFETCHT0(Mem{Base: w, Disp: prefetch + 64*line})
		}
		for r := range sum {
			u.planes(t, Mem{Base: w, Disp: 32 * r}, func(j int, p reg.VecVirtual) {
				b := YMM()
				VPBROADCASTD(Mem{Base: a, Disp: 4 * j}, b)
				VPMADDUBSW(b, p, b)
				VPADDW(b, sum[r], sum[r])
			})
		}
		ADDQ(U32(stripBytes), w)
		ADDQ(Imm(uint64(4*u.g)), a)
		DECQ(n)
		JNE(LabelRef(loop))
		Comment("Widen the sums into acc")
		for r := range sum {
			m := Mem{Base: acc, Disp: 32 * (rm*half + r)}
			VPMADDWD(u.ones, sum[r], sum[r])
			VPADDD(m, sum[r], sum[r])
			VMOVDQU(sum[r], m)
		}
		if half == 0 {
			Comment("Back to the other 32 rows of the same blocks")
			MOVQ(count, n)
			SHLQ(Imm(8), n)
			SUBQ(n, w)
			ADDQ(U32(stripBytes/2), w)
		}
	}
	SUBQ(U32(stripBytes/2), w)
	MOVQ(a, act)
	TESTQ(blocks, blocks)
	JNE(LabelRef("chunk"))
	done()
}

// madUnpack writes the digits of a few blocks, to be multiplied with many tokens.
func madUnpack(u *unpacker) {
	text(fmt.Sprintf("madUnpack%dAVX2", u.g), "func(planes, w *byte, blocks int)")
	contract(fmt.Sprintf("madUnpack%dAVX2 sets planes[block][%d][64 rows][4] to the digits of a strip's blocks.", u.g, u.g),
		"blocks is positive.")
	planes, w, blocks := param("planes"), param("w"), param("blocks")
	t := u.load()
	Label("loop")
	for r := range 8 {
		if r%2 == 0 {
			PREFETCHT0(Mem{Base: w, Disp: prefetch + 32*r})
		}
		u.planes(t, Mem{Base: w, Disp: 32 * r}, func(j int, p reg.VecVirtual) {
			VMOVDQU(p, Mem{Base: planes, Disp: j*stripBytes + 32*r})
		})
	}
	ADDQ(U32(stripBytes), w)
	ADDQ(U32(uint32(u.g*stripBytes)), planes)
	DECQ(blocks)
	JNE(LabelRef("loop"))
	done()
}

// madTile multiplies unpacked digits with n tokens, 16 rows at a time.
func madTile(ones Mem, n int) {
	text(fmt.Sprintf("madTile%dAVX2", n), "func(planes *byte, act *int8, count int, acc *int32)")
	contract(fmt.Sprintf("madTile%dAVX2 adds to acc[%d][64] the products of planes[count][64][4] and act[count][%d][4].", n, n, n),
		"count is in [1, 64].")
	planes, act, count, acc := param("planes"), param("act"), param("count"), param("acc")
	group := GP64()
	MOVQ(U32(4), group)
	const rm = 2
	sum := make([][rm]reg.VecVirtual, n)
	for i := range sum {
		for r := range rm {
			sum[i][r] = YMM()
		}
	}
	Label("group")
	Comment("16 rows and all tokens stay in registers")
	a, p, c := GP64(), GP64(), GP64()
	MOVQ(act, a)
	MOVQ(planes, p)
	MOVQ(count, c)
	for i := range sum {
		for r := range rm {
			zeroY(sum[i][r])
		}
	}
	Label("loop")
	var w [rm]reg.VecVirtual
	for r := range w {
		w[r] = YMM()
		VMOVDQU(Mem{Base: p, Disp: 32 * r}, w[r])
	}
	for i := range sum {
		b := YMM()
		VPBROADCASTD(Mem{Base: a, Disp: 4 * i}, b)
		for r := range w {
			m := YMM()
			VPMADDUBSW(b, w[r], m)
			VPADDW(m, sum[i][r], sum[i][r])
		}
	}
	ADDQ(U32(stripBytes), p)
	ADDQ(Imm(uint64(4*n)), a)
	DECQ(c)
	JNE(LabelRef("loop"))
	Comment("Widen the sums into acc")
	for i := range sum {
		for r := range w {
			m := Mem{Base: acc, Disp: i*stripBytes + 32*r}
			VPMADDWD(ones, sum[i][r], sum[i][r])
			VPADDD(m, sum[i][r], sum[i][r])
			VMOVDQU(sum[i][r], m)
		}
	}
	ADDQ(Imm(rm*32), planes)
	ADDQ(Imm(rm*32), acc)
	DECQ(group)
	JNE(LabelRef("group"))
	done()
}

func madFinish() {
	text("madFinishAVX2", "func(y *float32, acc *int32, token float32, rows *float32)")
	contract("madFinishAVX2 sets y[64] = float32(acc)·(token·rows).")
	y, acc, rows := param("y"), param("acc"), param("rows")
	x := Load(Param("token"), XMM())
	s := YMM()
	VBROADCASTSS(x.(reg.VecVirtual), s)
	for r := range 8 {
		f, v := YMM(), YMM()
		VMULPS(Mem{Base: rows, Disp: 32 * r}, s, f)
		VCVTDQ2PS(Mem{Base: acc, Disp: 32 * r}, v)
		VMULPS(f, v, v)
		VMOVUPS(v, Mem{Base: y, Disp: 32 * r})
	}
	done()
}
