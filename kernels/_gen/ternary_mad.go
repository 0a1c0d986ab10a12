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
	stripBytes = 256 // one block of 64 rows
	prefetch   = 4096
)

func ternaryMAD() {
	u := newUnpacker()
	for _, g := range []int{4, 5} {
		madStream(u, g)
		madUnpack(u, g)
	}
	for _, n := range []int{1, 2, 4} {
		madTile(u, n)
	}
	madFinish()
}

// unpacker splits 32 base-3 bytes into planes of digits. Bytes have no
// multiply: each half of a 16-bit lane is divided by 9 or 27 as the high part of
// a 16-bit product, and VPSHUFB tables over 0..8 give two digits each.
type unpacker struct {
	by9, by27, even, odd, eight, seventeen Mem // constants
	units, tens, nines, twenty7s           Mem // tables over 0..8
	ones                                   Mem
}

func newUnpacker() *unpacker {
	t := func(name string, f func(i int) int) Mem {
		return table(name, repeat16(fill(16, func(i int) byte {
			if i > 8 {
				return 0
			}
			return byte(f(i))
		})))
	}
	b := func(name string, v byte) Mem { return table(name, fill(32, func(int) byte { return v })) }
	return &unpacker{
		by9:       table("ninth", words(16, 7296)),  // 57·2^7; x·57>>9 = x/9 for x <= 80
		by27:      table("part27", words(16, 2428)), // x·2428>>16 = x/27 for x <= 242
		even:      table("evenBytes", words(16, 0x00ff)),
		odd:       table("oddBytes", words(16, 0xff00)),
		eight:     b("eight", 8),
		seventeen: b("seventeen", 17),
		units:     t("units", func(i int) int { return i % 3 }),
		tens:      t("threes", func(i int) int { return i / 3 }),
		nines:     t("nines", func(i int) int { return 9 * i }),
		twenty7s:  t("twenty7s", func(i int) int { return 27 * i }),
		ones:      table("wordOnes", words(16, 1)),
	}
}

// unpackTables are the tables held in registers.
type unpackTables struct{ units, tens, nines, twenty7s reg.VecVirtual }

func (u *unpacker) load(g int) unpackTables {
	get := func(m Mem) reg.VecVirtual {
		y := YMM()
		VMOVDQU(m, y)
		return y
	}
	t := unpackTables{units: get(u.units), tens: get(u.tens), nines: get(u.nines)}
	if g == 5 {
		t.twenty7s = get(u.twenty7s)
	}
	return t
}

// planes calls use with the digits of each trit position of the bytes at m.
func (u *unpacker) planes(g int, t unpackTables, m Mem, use func(j int, plane reg.VecVirtual)) {
	lo, hi, p := YMM(), YMM(), YMM()
	pick := func(j int, tab, idx reg.VecVirtual) {
		VPSHUFB(idx, tab, p)
		use(j, p)
	}
	VMOVDQU(m, lo)
	if g == 4 {
		// In the odd bytes the even ones add at most 80·57/2^17 to a quotient whose fraction is below .91.
		VPMULHUW(u.by9, lo, hi)
		VPAND(u.odd, hi, hi)
		VPAND(u.even, lo, p)
		VPMULHUW(u.by9, p, p)
		VPOR(p, hi, hi)
		VPSHUFB(hi, t.nines, p)
		VPSUBB(p, lo, lo)
		pick(2, t.units, hi)
		pick(3, t.tens, hi)
	} else {
		// Here the fraction leaves no room: the bytes are divided apart.
		VPSRLW(Imm(8), lo, hi)
		VPMULHUW(u.by27, hi, hi)
		VPSLLW(Imm(8), hi, hi)
		VPAND(u.even, lo, p)
		VPMULHUW(u.by27, p, p)
		VPOR(p, hi, hi)
		VPSHUFB(hi, t.twenty7s, p)
		VPSUBB(p, lo, lo)
		pick(3, t.units, hi)
		pick(4, t.tens, hi)
		// lo is 0..26 now; its ninths are counted by comparing.
		VPCMPGTB(u.eight, lo, hi)
		VPCMPGTB(u.seventeen, lo, p)
		VPADDB(p, hi, hi)
		VPABSB(hi, hi)
		VPSHUFB(hi, t.nines, p)
		VPSUBB(p, lo, lo)
		use(2, hi)
	}
	pick(0, t.units, lo)
	pick(1, t.tens, lo)
}

// madStream is the product of a strip with one token, at the speed weights arrive.
func madStream(u *unpacker, g int) {
	chunk := 60 / g // blocks whose sums fit int16: 12 for g = 5
	if g == 4 {
		chunk = 16
	}
	text(fmt.Sprintf("madStream%dAVX2", g), "func(w *byte, act *int8, blocks int, acc *int32)")
	Doc(fmt.Sprintf("madStream%dAVX2 adds to acc[64] the digits of a strip times one token's quads [block][%d][4].", g, g),
		"blocks is positive.")
	w, act, blocks, acc := param("w"), param("act"), param("blocks"), param("acc")
	t := u.load(g)
	var sum [8]reg.VecVirtual
	for r := range sum {
		sum[r] = YMM()
	}
	Label("chunk")
	n := GP64()
	MOVQ(U32(uint32(chunk)), n)
	CMPQ(blocks, n)
	CMOVQLT(blocks, n)
	SUBQ(n, blocks)
	for r := range sum {
		zeroY(sum[r])
	}
	Label("loop")
	for r := range sum {
		if r%2 == 0 {
			PREFETCHT0(Mem{Base: w, Disp: prefetch + 32*r})
		}
		u.planes(g, t, Mem{Base: w, Disp: 32 * r}, func(j int, p reg.VecVirtual) {
			b := YMM()
			VPBROADCASTD(Mem{Base: act, Disp: 4 * j}, b)
			VPMADDUBSW(b, p, b)
			VPADDW(b, sum[r], sum[r])
		})
	}
	ADDQ(U32(stripBytes), w)
	ADDQ(Imm(uint64(4*g)), act)
	DECQ(n)
	JNE(LabelRef("loop"))
	for r := range sum {
		m := Mem{Base: acc, Disp: 32 * r}
		VPMADDWD(u.ones, sum[r], sum[r])
		VPADDD(m, sum[r], sum[r])
		VMOVDQU(sum[r], m)
	}
	TESTQ(blocks, blocks)
	JNE(LabelRef("chunk"))
	done()
}

// madUnpack writes the digits of a few blocks, to be multiplied with many tokens.
func madUnpack(u *unpacker, g int) {
	text(fmt.Sprintf("madUnpack%dAVX2", g), "func(planes, w *byte, blocks int)")
	Doc(fmt.Sprintf("madUnpack%dAVX2 sets planes[block][%d][64 rows][4] to the digits of a strip's blocks.", g, g),
		"blocks is positive.")
	planes, w, blocks := param("planes"), param("w"), param("blocks")
	t := u.load(g)
	Label("loop")
	for r := range 8 {
		PREFETCHT0(Mem{Base: w, Disp: prefetch + 32*r})
		u.planes(g, t, Mem{Base: w, Disp: 32 * r}, func(j int, p reg.VecVirtual) {
			VMOVDQU(p, Mem{Base: planes, Disp: j*stripBytes + 32*r})
		})
	}
	ADDQ(U32(stripBytes), w)
	ADDQ(U32(uint32(g*stripBytes)), planes)
	DECQ(blocks)
	JNE(LabelRef("loop"))
	done()
}

// madTile multiplies unpacked digits with n tokens, 16 rows at a time.
func madTile(u *unpacker, n int) {
	text(fmt.Sprintf("madTile%dAVX2", n), "func(planes *byte, act *int8, count int, acc *int32)")
	Doc(fmt.Sprintf("madTile%dAVX2 adds to acc[%d][64] the products of planes[count][64][4] and act[count][%d][4].", n, n, n),
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
	for i := range sum {
		for r := range w {
			m := Mem{Base: acc, Disp: i*stripBytes + 32*r}
			VPMADDWD(u.ones, sum[i][r], sum[i][r])
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
	Doc("madFinishAVX2 sets y[64] = float32(acc)·(token·rows).")
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
