package ternary

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// AVX-512 VNNI multiply-add for processors with two ports of 512 bits, which
// VPDPBUSD shares with all that unpacks digits:
//
//   - A register of digits is multiplied with up to 12 tokens, and takes one operation
//     of I2 (VGF2P8AFFINEQB shifts and masks at once) or two of I1 (VPERMB tables).
//   - A port takes its oldest ready operation first. So the digits of the next plane
//     are unpacked amid the products of the current one: before its own products, an
//     unpacking would wait behind all older products, and they for it.
//   - What the first tile of tokens unpacks is kept for the others as a panel of bytes
//     [blocks][g][rm][16 rows][4], 32·K of them, which fit L2.
//
//   - Weights to come are asked for into L2: Intel's cores have 48 lines under way there
//     and 16 in L1.
//
// Of the ports' operations N/(N+u) are VPDPBUSD for N tokens, u = 1 (I2) or 2 (I1).

const (
	gfniTall = 4  // tokens of the widest tile of four registers of rows
	gfniRows = 2  // registers of rows of wider tiles
	gfniMost = 12 // tokens of the widest tile: what registers hold sums for
)

func GFNI() {
	d := newGFNIDigits()
	for n := 1; n <= gfniTall; n++ {
		gfniTile(d, 4, 4, n)
		if n > 3 { // with fewer tokens VNNI's tiles of I1 are as fast
			gfniTile(d, 5, 4, n)
		}
	}
	for _, g := range []int{4, 5} {
		for _, n := range emit.Widths(gfniTall+1, gfniMost, 5) {
			gfniTile(d, g, gfniRows, n)
		}
	}
	for _, n := range emit.Widths(1, gfniMost) {
		gfniPanel(n)
	}
}

// gfniDigits takes digits out of bytes.
//
// Of I2 matrices[j] moves bits 2j and 2j+1 of each byte to 0 and 1.
//
// A byte v of I1 is 27·n + r. VPERMB looks up by six bits, so n and r are looked up by
// v's upper six, v/4, as far as these tell, and what the lower two, v%4, add is added
// to the entries: high(v/4) + v ends as a number whose lower six bits tell n, and
// low(v/4) + v as one that tells r. The carry does the comparison.
type gfniDigits struct {
	three, matrices Mem
	high, low       Mem
	digits          [5]Mem
}

func newGFNIDigits() *gfniDigits {
	t := &gfniDigits{three: emit.Table("gfniThree", emit.Fill(8, func(int) byte { return 3 }))}
	t.matrices = emit.Table("gfniBits", emit.Fill(32, func(i int) byte {
		switch j := i / 8; i % 8 {
		case 7:
			return 1 << (2 * j)
		case 6:
			return 2 << (2 * j)
		}
		return 0
	}))
	// Of four bytes 4i..4i+3 those from 27·n on have the digits of n: their numbers are
	// 4n..4n+3, and those before have 4n-1 and less.
	n := func(i int) int { return (4*i + 3) / 27 }
	t.high = emit.Table("gfniHigh", emit.Fill(64, func(i int) byte {
		before := min(max(27*n(i)-4*i, 0), 3) // of the four, those with n-1
		return byte(4*n(i) - before - 4*i)
	}))
	t.low = emit.Table("gfniLow", emit.Fill(64, func(i int) byte { return byte(4*i%27 - 4*i) }))
	for j := range t.digits {
		t.digits[j] = emit.Table(fmt.Sprintf("gfniDigit%d", j), emit.Fill(64, func(i int) byte {
			if j >= 3 {
				return byte(i / 4 / emit.Pow3(j-3) % 3)
			}
			return byte(i % 27 / emit.Pow3(j) % 3)
		}))
	}
	return t
}

// gfniUnpacker unpacks the blocks of one tile in turn. Bytes of I1 are split into what
// tells n and r a block ahead; both wait in memory.
type gfniUnpacker struct {
	*gfniDigits
	g             int
	w, next       reg.Register        // the block and the next one
	halves, later reg.GPVirtual       // of I1: what is split of both, [rm][2][64]
	planes        [2][]reg.VecVirtual // digits of planes in turns
}

func (u *gfniUnpacker) begin() {
	rm := len(u.planes[0])
	if u.g == 5 {
		u.halves, u.later = emit.AlignedLocal(2*2*64*rm), GP64()
		MOVQ(u.w, u.next)
		MOVQ(u.halves, u.later)
		for r := range rm {
			u.split(r)
		}
		ADDQ(U32(uint32(128*rm)), u.later)
	}
	u.unpack(0, u.w, u.halves, u.planes[0])
}

// split splits register r of the next block.
func (u *gfniUnpacker) split(r int) {
	if u.g == 4 || r >= len(u.planes[0]) {
		return
	}
	x, low, high := ZMM(), ZMM(), ZMM()
	VMOVDQU64(Mem{Base: u.next, Disp: 64 * r}, x)
	VPSRLW(Imm(2), x, low) // VPERMB ignores what comes from the neighbour
	VPERMB(u.high, low, high)
	VPERMB(u.low, low, low)
	VPADDB(x, high, high)
	VPADDB(x, low, low)
	VMOVDQU64(high, Mem{Base: u.later, Disp: 128 * r})
	VMOVDQU64(low, Mem{Base: u.later, Disp: 128*r + 64})
}

// ahead unpacks what follows plane j.
func (u *gfniUnpacker) ahead(j int) {
	if d := u.planes[(j+1)%2]; j+1 < u.g {
		u.unpack(j+1, u.w, u.halves, d)
	} else {
		u.unpack(0, u.next, u.later, d)
	}
}

// unpack sets d to plane j of the block at w, split in halves.
func (u *gfniUnpacker) unpack(j int, w, halves reg.Register, d []reg.VecVirtual) {
	for r := range d {
		switch {
		case u.g == 5:
			VMOVDQU64(Mem{Base: halves, Disp: 128*r + 64*(1-j/3)}, d[r])
			VPERMB(u.digits[j], d[r], d[r])
		case j == 0:
			VMOVDQU64(Mem{Base: w, Disp: 64 * r}, d[r])
			VPANDD_BCST(u.three, d[r], d[r])
		default:
			VMOVDQU64(Mem{Base: w, Disp: 64 * r}, d[r])
			VGF2P8AFFINEQB_BCST(Imm(0), u.matrices.Offset(8*j), d[r], d[r])
		}
	}
}

// gfniTile emits the product of 16·rm rows of a strip with n tokens.
func gfniTile(t *gfniDigits, g, rm, n int) {
	keeps := rm == gfniRows
	param, also := "", ""
	if keeps {
		param = ", panel *byte"
		also = fmt.Sprintf(" It sets panel[blocks][%d][%d][16][4] to the digits, unless panel is nil.", g, rm)
	}
	name := fmt.Sprintf("gfni%dx%dx%dAVX512", g, 16*rm, n)
	emit.Text(name, "func(w *byte, act *int8, blocks int, negSum *int32, tokens, rows, y *float32, ldy int"+param+")")
	if keeps {
		gfniTiles.Add(n, byTrits(g))
	} else {
		gfniTalls.Add(n, byTrits(g))
	}
	emit.Contract(fmt.Sprintf("%s sets y[%d][%d] = float32(sum)·(tokens·rows) for as many first rows of w[blocks][64][4] and", name, n, 16*rm),
		fmt.Sprintf("act[blocks][%d][%d][4]; rows of y are ldy floats apart. blocks is positive.%s", g, n, also))
	w, act, blocks := emit.Arg("w"), emit.Arg("act"), emit.Arg("blocks")
	var panel reg.Register
	if keeps {
		panel = emit.Arg("panel")
	}
	sums := newVNNISets(rm, n, 1)
	u := &gfniUnpacker{gfniDigits: t, g: g, w: w, next: GP64()}
	for i := range u.planes {
		u.planes[i] = zmms(rm)
	}
	u.begin()
	Label("loop")
	Comment("A plane's digits times their activations; the next one's are unpacked meanwhile")
	LEAQ(Mem{Base: w, Disp: stripBytes}, u.next)
	CMPQ(blocks, Imm(1))
	CMOVQEQ(w, u.next) // after the last block there may be no memory
	for r := range rm {
		PREFETCHT1(Mem{Base: w, Disp: 64*r + vnniPrefetch})
	}
	for j := range g {
		d := u.planes[j%2]
		if keeps {
			TESTQ(panel, panel)
			JEQ(LabelRef(fmt.Sprint("plane", j)))
			for r := range d {
				VMOVDQU64(d[r], Mem{Base: panel, Disp: 64 * (j*rm + r)})
			}
			if j == g-1 {
				ADDQ(U32(uint32(64*g*rm)), panel)
			}
			Label(fmt.Sprint("plane", j))
		}
		for i := range n {
			if at := (Mem{Base: act, Disp: 4 * (j*n + i)}); rm == 1 {
				VPDPBUSD_BCST(at, d[0], sums.sum(0)[0][i])
			} else {
				a := ZMM()
				VPBROADCASTD(at, a)
				for r := range d {
					VPDPBUSD(a, d[r], sums.sum(0)[r][i])
				}
			}
			if i == n/2 {
				u.ahead(j)
			}
		}
		u.split(j)
	}
	if g == 5 {
		XCHGQ(u.halves, u.later)
		for r := range rm {
			VMOVDQA64(u.planes[1][r], u.planes[0][r]) // five planes: plane 0 is ready in the other set
		}
	}
	ADDQ(U32(stripBytes), w)
	ADDQ(U32(uint32(4*g*n)), act)
	DECQ(blocks)
	JNE(LabelRef("loop"))
	sums.finish()
}

func zmms(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = ZMM()
	}
	return v
}

// gfniPanel emits the product of a panel with n tokens.
func gfniPanel(n int) {
	name := fmt.Sprintf("gfniPanel%dx%dAVX512", 16*gfniRows, n)
	emit.Text(name, "func(panel *byte, act *int8, words int, negSum *int32, tokens, rows, y *float32, ldy int)")
	gfniPanels.Add(n)
	emit.Contract(fmt.Sprintf("%s sets y[%d][%d] = float32(sum)·(tokens·rows) for panel[words][%d][16][4] and", name, n, 16*gfniRows, gfniRows),
		fmt.Sprintf("act[words][%d][4]; rows of y are ldy floats apart. words is positive.", n))
	panel, act, words := emit.Arg("panel"), emit.Arg("act"), emit.Arg("words")
	sums := newVNNISets(gfniRows, n, 1)
	d := zmms(gfniRows)
	Label("loop")
	for r := range d {
		VMOVDQU64(Mem{Base: panel, Disp: 64 * r}, d[r])
	}
	for i := range n {
		a := ZMM()
		VPBROADCASTD(Mem{Base: act, Disp: 4 * i}, a)
		for r := range d {
			VPDPBUSD(a, d[r], sums.sum(0)[r][i])
		}
	}
	ADDQ(U32(64*gfniRows), panel)
	ADDQ(Imm(uint64(4*n)), act)
	DECQ(words)
	JNE(LabelRef("loop"))
	sums.finish()
}
