package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// AVX2 multiply-add. Trits enter VPMADDUBSW as digits 0..2; a pair of products
// is at most 2·2·127 = 508, so 64 of them (16 blocks of I2, 12 of I1) fit int16
// before they are widened into int32. What bounds these kernels are the four
// vector pipes, so tiles keep sums in registers and count instructions: a plane
// of digits is taken out once for all tokens of a tile.

const (
	stripRows  = 64
	stripBytes = 4 * stripRows // one block
	prefetch   = 8192
	madTokens  = 8    // of the widest tile
	lead       = 4096 // bytes by which tiles ask for weights before they take them
)

// ones widen pairs of int16 by VPMADDWD.
var ones Mem

func ternaryMAD() {
	ones = table("ones", words(16, 1))
	for _, d := range []struct {
		digits
		g int
	}{{newCrumbs(), 4}, {newBase3(), 5}} {
		for n := 1; n <= madTokens; n++ {
			madTile(d, d.g, n)
		}
	}
}

// digits is a way to multiply one block of some rows with a tile of tokens.
type digits interface {
	// turns are the numbers of n tokens that a chunk of blocks is multiplied with in turn.
	turns(n int) []int
	// registers is how many registers of 8 rows n tokens of a turn are multiplied with together.
	registers(n int) int
	// load puts constants into registers.
	load(n int)
	// multiply adds to sum[registers][n] the products of the block at w with the
	// quads at act, of every trit position n of so many.
	multiply(w, act Mem, tokens int, sum [][]reg.VecVirtual)
}

// madTile emits the product of whole strips with n tokens.
func madTile(d digits, g, n int) {
	name := fmt.Sprintf("mad%dx%dAVX2", g, n)
	ahead, ask := beginMAD(name, g, n)
	w, act, strips, rows, y, acc := param("w"), param("act"), param("strips"), param("rows"), param("y"), param("acc")
	Label("strip")
	tmp := beginSums(n, acc)
	d.load(n)
	a, left := GP64(), GP64()
	MOVQ(act, a)
	if n > 1 {
		LEAQ(Mem{Base: w, Disp: lead}, ahead)
	}
	Load(Param("blocks"), left)
	Label("chunk")
	Comment("As many blocks as int16 sums have room for")
	count := GP64()
	MOVQ(U32(uint32(64/g)), count)
	CMPQ(left, count)
	CMOVQLT(left, count)
	SUBQ(count, left)
	turn := madTurn{d: d, g: g, tokens: n, w: w, act: a, acc: acc, count: count}
	for i, n := range d.turns(n) {
		turn.emit(i, n, ahead, ask)
		turn.first += n
	}
	Comment("On to the next blocks")
	MOVQ(count, tmp)
	SHLQ(Imm(8), tmp)
	ADDQ(tmp, w)
	IMUL3Q(U32(uint32(4*g*n)), count, tmp)
	ADDQ(tmp, a)
	TESTQ(left, left)
	JNE(LabelRef("chunk"))
	madFinish(n, rows, y, acc)
	ADDQ(U32(stripBytes), rows)
	ADDQ(U32(stripBytes), y)
	DECQ(strips)
	JNE(LabelRef("strip"))
	done()
}

// beginMAD begins the product of whole strips with n tokens, and says where the
// weights to ask for begin, once that is set for several tokens, and how.
func beginMAD(name string, g, n int) (ahead reg.Register, ask func(Op)) {
	more := ""
	if n == 1 {
		more = ", next uintptr"
	}
	text(name, "func(w *byte, act *int8, blocks, strips int, negSum *int32, tokens, rows, y *float32, ldy int, acc *int32"+more+")")
	contract(fmt.Sprintf("%s sets y[%d][strips·64] = float32(sum)·(tokens·rows) for strips w[strips][blocks][64][4] and", name, n),
		fmt.Sprintf("act[blocks][%d][%d][4]; rows of y are ldy floats apart. acc[%d][64] is scratch. strips and blocks are positive.", g, n, n))
	ahead, ask = GP64(), PREFETCHT0
	if n == 1 { // _gen/grouped_stream.go says why one token asks so
		Comment("As many bytes from next on are prefetched as w has; they need not be memory")
		Load(Param("next"), ahead)
		ask = PREFETCHT1
	}
	return ahead, ask
}

// beginSums sets acc[n][64] to what takes the digits' offset of 1 out again, and
// gives a register that is free afterwards.
func beginSums(n int, acc reg.Register) (tmp reg.Register) {
	Comment("Sums begin at −Σa, which takes the digits' offset of 1 out again")
	tmp = GP64()
	Load(Param("negSum"), tmp)
	for i := range n {
		v := YMM()
		VPBROADCASTD(Mem{Base: tmp, Disp: 4 * i}, v)
		for r := range 8 {
			VMOVDQU(v, Mem{Base: acc, Disp: stripBytes*i + 32*r})
		}
	}
	return tmp
}

// zeroSums are sums [registers][n] of nothing yet.
func zeroSums(registers, n int) [][]reg.VecVirtual {
	sums := make([][]reg.VecVirtual, registers)
	for r := range sums {
		sums[r] = ymms(n)
	}
	return sums
}

// madTurn multiplies all rows of a chunk of blocks with some tokens of a tile.
type madTurn struct {
	d          digits
	g, tokens  int // of the tile
	first      int // token
	w, act     reg.Register
	acc, count reg.Register
}

// emit does the turn of n tokens. The first one asks for later blocks line by line.
func (t *madTurn) emit(turn, n int, ahead reg.Register, ask func(Op)) {
	label := func(s string) string { return fmt.Sprint(s, turn) }
	rm := t.d.registers(n)
	w, a, out, group, c := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(t.w, w)
	MOVQ(t.act, a)
	MOVQ(t.acc, out)
	if rm < 8 {
		MOVQ(U32(uint32(8/rm)), group)
	}
	Label(label("group"))
	Comment("These rows of the blocks")
	sum := zeroSums(rm, n)
	MOVQ(t.count, c)
	Label(label("loop"))
	if turn == 0 {
		for line := 0; line < 32*rm; line += 64 {
			ask(Mem{Base: ahead, Disp: line})
		}
		ADDQ(U32(uint32(32*rm)), ahead)
	}
	t.d.multiply(Mem{Base: w}, Mem{Base: a, Disp: 4 * t.first}, t.tokens, sum)
	ADDQ(U32(stripBytes), w)
	ADDQ(Imm(uint64(4*t.g*t.tokens)), a)
	DECQ(c)
	JNE(LabelRef(label("loop")))
	Comment("Widen the sums into acc")
	for r := range sum {
		for i := range sum[r] {
			m, s := Mem{Base: out, Disp: stripBytes*(t.first+i) + 32*r}, sum[r][i]
			VPMADDWD(ones, s, s)
			VPADDD(m, s, s)
			VMOVDQU(s, m)
		}
	}
	if rm < 8 {
		Comment("Back to the next rows of the same blocks, which L1 holds")
		MOVQ(t.count, c)
		SHLQ(Imm(8), c)
		SUBQ(c, w)
		ADDQ(U32(uint32(32*rm)), w)
		MOVQ(t.act, a)
		ADDQ(U32(uint32(32*rm)), out)
		DECQ(group)
		JNE(LabelRef(label("group")))
	}
}

// madFinish scales and stores the sums of a strip, token by token.
func madFinish(n int, rows, y, acc reg.Register) {
	Comment("Scale and store the sums")
	tokens, ldy, out := GP64(), GP64(), GP64()
	Load(Param("tokens"), tokens)
	Load(Param("ldy"), ldy)
	MOVQ(y, out)
	for i := range n {
		s := YMM()
		VBROADCASTSS(Mem{Base: tokens, Disp: 4 * i}, s)
		for r := range 8 {
			f, v := YMM(), YMM()
			VMULPS(Mem{Base: rows, Disp: 32 * r}, s, f)
			VCVTDQ2PS(Mem{Base: acc, Disp: stripBytes*i + 32*r}, v)
			VMULPS(f, v, v)
			VMOVUPS(v, Mem{Base: out, Disp: 32 * r})
		}
		if i+1 < n {
			LEAQ(Mem{Base: out, Index: ldy, Scale: 4}, out)
		}
	}
}

func loadY(m Mem) reg.VecVirtual {
	y := YMM()
	VMOVDQU(m, y)
	return y
}

// add adds to sum the products of digits p and the quad at m. It may end p.
func add(m Mem, p, sum reg.VecVirtual) {
	b := YMM()
	VPBROADCASTD(m, b)
	VPMADDUBSW(b, p, b)
	VPADDW(b, sum, sum)
}

// crumbs takes digits out of I2 by shifts and masks.
type crumbs struct {
	threes, twelves Mem
	three           reg.VecVirtual
}

func newCrumbs() *crumbs {
	return &crumbs{threes: table("crumb0", fill(32, func(int) byte { return 3 })), twelves: table("crumb1", fill(32, func(int) byte { return 12 }))}
}

// turns of 3 and 4 tokens share what they load among two registers of rows, which
// spares more instructions than a digit that is taken out for 8 tokens.
func (k *crumbs) turns(n int) []int {
	if n > 5 {
		return []int{(n + 1) / 2, n / 2}
	}
	return []int{n}
}

func (k *crumbs) registers(n int) int {
	switch {
	case n == 1:
		return 8
	case n == 2:
		return 4
	}
	return 2
}

func (k *crumbs) load(n int) {
	if !k.full(n) {
		k.three = loadY(k.threes)
	}
}

// full tells whether the sums of n tokens leave no register for the mask.
func (k *crumbs) full(n int) bool { return n == 2 || n == 5 }

func (k *crumbs) mask(n int, x, p reg.VecVirtual) {
	if k.full(n) {
		VPAND(k.threes, x, p)
	} else {
		VPAND(k.three, x, p)
	}
}

func (k *crumbs) multiply(w, act Mem, tokens int, sum [][]reg.VecVirtual) {
	n := len(sum[0])
	switch n {
	case 1:
		k.stream(w, act, sum)
		return
	case 2:
		k.pair(w, act, sum)
		return
	}
	x, p := make([]reg.VecVirtual, len(sum)), make([]reg.VecVirtual, len(sum))
	for r := range sum {
		x[r], p[r] = loadY(w.Offset(32*r)), YMM()
	}
	for j := range 4 {
		for r := range sum {
			if j > 0 {
				VPSRLW(Imm(2), x[r], x[r])
			}
			k.mask(n, x[r], p[r])
		}
		for i := range n {
			b := YMM()
			VPBROADCASTD(act.Offset(4*(j*tokens+i)), b)
			for r := range sum {
				m := b
				if r+1 < len(sum) {
					m = YMM()
				}
				VPMADDUBSW(b, p[r], m)
				VPADDW(m, sum[r][i], sum[r][i])
			}
		}
	}
}

// pair is multiply for two tokens: it keeps their quads, for more rows at a time
// than there are registers for digits.
func (k *crumbs) pair(w, act Mem, sum [][]reg.VecVirtual) {
	x := make([]reg.VecVirtual, len(sum))
	for r := range sum {
		x[r] = loadY(w.Offset(32 * r))
	}
	for j := range 4 {
		b, c := YMM(), YMM()
		VPBROADCASTD(act.Offset(8*j), b)
		VPBROADCASTD(act.Offset(8*j+4), c)
		for r := range sum {
			p, m := YMM(), YMM()
			if j > 0 {
				VPSRLW(Imm(2), x[r], x[r])
			}
			k.mask(2, x[r], p)
			VPMADDUBSW(b, p, m)
			VPADDW(m, sum[r][0], sum[r][0])
			VPMADDUBSW(c, p, p)
			VPADDW(p, sum[r][1], sum[r][1])
		}
	}
}

// stream is multiply for one token: all rows at once, so that weights are read
// in order. Digits 1 and 3 are multiplied where they stand, as 4 times what they
// are, which saves a shift: 4·4·127 for both of a pair fit int16.
func (k *crumbs) stream(w, act Mem, sum [][]reg.VecVirtual) {
	var b [4]reg.VecVirtual
	for j := range b {
		b[j] = YMM()
		VPBROADCASTD(act.Offset(4*j), b[j])
	}
	for r := range sum {
		s := sum[r][0]
		x, p, q := loadY(w.Offset(32*r)), YMM(), YMM()
		VPAND(k.three, x, p)
		VPMADDUBSW(b[0], p, p)
		VPADDW(p, s, s)
		VPAND(k.twelves, x, q)
		VPMADDUBSW(b[1], q, q)
		VPSRLW(Imm(4), x, x)
		VPAND(k.three, x, p)
		VPMADDUBSW(b[2], p, p)
		VPADDW(p, s, s)
		VPAND(k.twelves, x, x)
		VPMADDUBSW(b[3], x, x)
		VPADDW(x, q, q)
		VPSRAW(Imm(2), q, q)
		VPADDW(q, s, s)
	}
}

// base3 takes digits out of I1. Bytes have no multiply: each half of a 16-bit
// lane is divided by 27 as the high part of a 16-bit product, and VPSHUFB tables
// over 0..8 give two digits each.
type base3 struct {
	by27, even, eight, seventeen Mem
	tables                       [4]Mem // by what a lookup is for
	even16                       reg.VecVirtual
	held                         [4]reg.VecVirtual // tables in registers, as far as there are some
}

// The tables of base3, the most used first.
const (
	units = iota
	threes
	nines
	twentySevens
)

func newBase3() *base3 {
	t := func(name string, f func(i int) int) Mem {
		return table(name, repeat16(fill(16, func(i int) byte {
			if i > 8 {
				return 0
			}
			return byte(f(i))
		})))
	}
	return &base3{
		by27:      table("by27", words(16, 2428)), // x·2428>>16 = x/27 for x <= 242
		even:      table("even", words(16, 0x00ff)),
		eight:     table("eight", fill(32, func(int) byte { return 8 })),
		seventeen: table("seventeen", fill(32, func(int) byte { return 17 })),
		tables: [4]Mem{
			t("units", func(i int) int { return i % 3 }),
			t("threes", func(i int) int { return i / 3 }),
			t("nines", func(i int) int { return 9 * i }),
			t("twentySevens", func(i int) int { return 27 * i }),
		},
	}
}

func (k *base3) turns(n int) []int { return []int{n} }

func (k *base3) registers(n int) int {
	switch {
	case n == 1:
		return 8
	case n == 2:
		return 4
	case n <= 4:
		return 2
	}
	return 1
}

func (k *base3) load(n int) {
	k.even16 = loadY(k.even)
	free := min(16-1-4-n*k.registers(n), len(k.tables))
	for i := range k.tables {
		k.held[i] = nil
		if i < free {
			k.held[i] = loadY(k.tables[i])
		}
	}
}

// look sets p to the entries of a table at idx, which may be p.
func (k *base3) look(table int, idx, p reg.VecVirtual) {
	t := k.held[table]
	if t == nil {
		t = loadY(k.tables[table])
	}
	VPSHUFB(idx, t, p)
}

func (k *base3) multiply(w, act Mem, _ int, sum [][]reg.VecVirtual) {
	n := len(sum[0])
	for r := range sum {
		lo, hi, p := loadY(w.Offset(32*r)), YMM(), YMM()
		use := func(j int, p reg.VecVirtual) {
			for i := range n {
				add(act.Offset(4*(j*n+i)), p, sum[r][i])
			}
		}
		Comment("32 indices: divide, look digits up, multiply")
		// The quotients of odd bytes come out in place, those of even bytes from a second product.
		VPAND(k.even16, lo, p)
		VPANDN(lo, k.even16, hi)
		VPMULHUW(k.by27, hi, hi)
		VPMULHUW(k.by27, p, p)
		VPBLENDVB(k.even16, p, hi, hi)
		k.look(twentySevens, hi, p)
		VPSUBB(p, lo, lo)
		k.look(units, hi, p)
		use(3, p)
		k.look(threes, hi, p)
		use(4, p)
		Comment("lo is 0..26 now; its ninths are counted by comparing")
		VPCMPGTB(k.eight, lo, hi)
		VPCMPGTB(k.seventeen, lo, p)
		VPADDB(p, hi, hi)
		VPABSB(hi, hi)
		k.look(nines, hi, p)
		VPSUBB(p, lo, lo)
		use(2, hi)
		k.look(units, lo, p)
		use(0, p)
		k.look(threes, lo, p)
		use(1, p)
	}
}
