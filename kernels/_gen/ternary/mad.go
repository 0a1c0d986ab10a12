// Package ternary emits the kernels of kernels/ternary.
package ternary

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
	"github.com/lutra-lm/lutra/kernels/_gen/vector"
)

// AVX2 multiply-add. Trits enter VPMADDUBSW as digits 0..2; a pair of products
// is at most 2·2·127 = 508, so 64 of them (16 blocks of I2, 12 of I1) fit int16
// before they are widened into int32. What bounds these kernels are the four
// vector pipes, so tiles keep sums in registers and count instructions: a plane
// of digits is taken out once for all tokens of a tile.

const (
	stripRows  = 64
	stripBytes = 4 * stripRows // one block
	lead       = 4096          // bytes by which tiles prefetch weights before they read them
)

// ones widen pairs of int16 by VPMADDWD.
var ones Mem

func MAD() {
	ones = emit.Table("ones", emit.Words(16, 1))
	for _, d := range []struct {
		digits
		g, widest int
	}{{newBitPairs(), 4, 4}, {newBase3(), 5, 8}} {
		for _, n := range emit.Widths(1, d.widest) {
			madTile(d, d.g, n)
		}
	}
}

// digits is a way to multiply one block of some rows with a tile of tokens.
type digits interface {
	// registers returns how many registers of 8 rows n tokens are multiplied with.
	registers(n int) int
	// load puts constants into registers.
	load(n int)
	// multiply adds to sum[registers][n] the products of the block at w with the
	// quads at act, of tokens, of every trit position.
	multiply(w, act Mem, tokens int, sum [][]reg.VecVirtual)
}

// madTile emits the product of whole strips with n tokens.
func madTile(d digits, g, n int) {
	name := fmt.Sprintf("mad%dx%dAVX2", g, n)
	ahead, prefetch := beginMAD(name, "cpu.AVX2", g, n)
	w, act, strips, rows, y, acc := emit.Arg("w"), emit.Arg("act"), emit.Arg("strips"), emit.Arg("rows"), emit.Arg("y"), emit.Arg("acc")
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
	madChunk(d, g, n, w, a, acc, count, ahead, prefetch)
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
	emit.Done()
}

// beginMAD begins the product of whole strips with n tokens, and gives the address to
// prefetch from, which for several tokens is set once, and the instruction.
func beginMAD(name, isa string, g, n int) (ahead reg.Register, prefetch func(Op)) {
	more := ""
	if n == 1 {
		more = ", next uintptr"
	}
	emit.Text(name, "func(w *byte, act *int8, blocks, strips int, negSum *int32, tokens, rows, y *float32, ldy int, acc *int32"+more+")")
	if n == 1 {
		madStreams.Add(n, isa, byTrits(g))
	} else {
		madTiles.Add(n, isa, byTrits(g))
	}
	emit.Contract(fmt.Sprintf("%s sets y[%d][strips·64] = float32(sum)·(tokens·rows) for strips w[strips][blocks][64][4] and", name, n),
		fmt.Sprintf("act[blocks][%d][%d][4]; rows of y are ldy floats apart. acc[%d][64] is scratch. strips and blocks are positive.", g, n, n))
	ahead, prefetch = GP64(), PREFETCHT0
	if n == 1 { // _gen/grouped/stream.go says why one token prefetches so
		Comment("As many bytes from next on are prefetched as w has; they need not be memory")
		Load(Param("next"), ahead)
		prefetch = PREFETCHT1
	}
	return ahead, prefetch
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

// zeroSums returns sums [registers][n] of nothing yet.
func zeroSums(registers, n int) [][]reg.VecVirtual {
	sums := make([][]reg.VecVirtual, registers)
	for r := range sums {
		sums[r] = vector.YMMs(n)
	}
	return sums
}

// madChunk multiplies all rows of count blocks with n tokens, and prefetches later blocks line by line.
func madChunk(d digits, g, n int, blocks, act, acc, count, ahead reg.Register, prefetch func(Op)) {
	rm := d.registers(n)
	w, a, out, group, c := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(blocks, w)
	MOVQ(act, a)
	MOVQ(acc, out)
	if rm < 8 {
		MOVQ(U32(uint32(8/rm)), group)
	}
	Label("group")
	Comment("These rows of the blocks")
	sum := zeroSums(rm, n)
	MOVQ(count, c)
	Label("loop")
	for line := 0; line < 32*rm; line += 64 {
		prefetch(Mem{Base: ahead, Disp: line})
	}
	ADDQ(U32(uint32(32*rm)), ahead)
	d.multiply(Mem{Base: w}, Mem{Base: a}, n, sum)
	ADDQ(U32(stripBytes), w)
	ADDQ(Imm(uint64(4*g*n)), a)
	DECQ(c)
	JNE(LabelRef("loop"))
	Comment("Widen the sums into acc")
	for r := range sum {
		for i := range sum[r] {
			m, s := Mem{Base: out, Disp: stripBytes*i + 32*r}, sum[r][i]
			VPMADDWD(ones, s, s)
			VPADDD(m, s, s)
			VMOVDQU(s, m)
		}
	}
	if rm < 8 {
		Comment("Back to the next rows of the same blocks, which L1 holds")
		MOVQ(count, c)
		SHLQ(Imm(8), c)
		SUBQ(c, w)
		ADDQ(U32(uint32(32*rm)), w)
		MOVQ(act, a)
		ADDQ(U32(uint32(32*rm)), out)
		DECQ(group)
		JNE(LabelRef("group"))
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

func LoadY(m Mem) reg.VecVirtual {
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
