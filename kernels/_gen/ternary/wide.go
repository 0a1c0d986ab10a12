package ternary

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// What the AVX-512 lookup needs around its tables of 32 tokens a row.

// digitWeight returns what the digit of trit j adds to a table row's index: bytes of
// I1 are base-3 numbers, those of I2 four fields of two bits.
func digitWeight(g, j int) int {
	if g == 5 {
		return emit.Pow3(j)
	}
	return 1 << (2 * j)
}

func wideBuild(g int) {
	emit.Text(fmt.Sprintf("wideBuild%dAVX512", g), "func(tables *int16, act *int8, groups int)")
	emit.Contract(fmt.Sprintf("wideBuild%dAVX512 writes groups tables of %d rows [32] from act[groups][%d][32]: the row that the", g, tableRows(g), g),
		"byte of some trits w[j] names holds Σ w·act[j]. groups is positive.")
	tables, act, groups := emit.Arg("tables"), emit.Arg("act"), emit.Arg("groups")
	Label("loop")
	a := make([]reg.VecVirtual, g)
	for j := range a {
		a[j] = ZMM()
		VPMOVSXBW(Mem{Base: act, Disp: 32 * j}, a[j])
	}
	Comment("Walk the ternary tree depth first: each row is its parent's -a, +0 or +a")
	root := ZMM()
	emit.Zero(root)
	var walk func(j, row int, sum reg.VecVirtual)
	walk = func(j, row int, sum reg.VecVirtual) {
		if j < 0 {
			VMOVDQU64(sum, Mem{Base: tables, Disp: row * wideRowBytes})
			return
		}
		lo, hi := ZMM(), ZMM()
		VPSUBW(a[j], sum, lo)
		walk(j-1, row, lo)
		walk(j-1, row+digitWeight(g, j), sum)
		VPADDW(a[j], sum, hi)
		walk(j-1, row+2*digitWeight(g, j), hi)
	}
	walk(g-1, 0, root)
	ADDQ(U32(uint32(tableRows(g)*wideRowBytes)), tables)
	ADDQ(U32(uint32(32*g)), act)
	DECQ(groups)
	JNE(LabelRef("loop"))
	emit.Done()
}

// wideFinish transposes the sums of a strip, 16 rows × 4 tokens at a time.
func wideFinish() {
	emit.Text("wideFinishAVX512", "func(y *float32, ldy int, acc *int32, tokens, rows *float32)")
	emit.Contract("wideFinishAVX512 sets y[32][64] = float32(acc[64][32])·(tokens[32]·rows[64]); rows of y are ldy floats apart.")
	y, ldy, acc, tokens, rows := emit.Arg("y"), emit.Arg("ldy"), emit.Arg("acc"), emit.Arg("tokens"), emit.Arg("rows")
	SHLQ(Imm(2), ldy)
	group, out := GP64(), GP64()
	MOVQ(U32(4), group)
	Label("loop")
	Comment("16 rows: exchange rows and tokens, scale, store token by token")
	s := ZMM()
	VMOVUPS(Mem{Base: rows}, s)
	MOVQ(y, out)
	for quad := range 8 {
		v := make([]reg.VecVirtual, 4)
		for i := range v {
			v[i] = ZMM()
			for lane := range 4 { // of lane's 4 rows, row i
				m := Mem{Base: acc, Disp: 128*(4*lane+i) + 16*quad}
				if lane == 0 {
					VBROADCASTI32X4(m, v[i])
				} else {
					VINSERTI32X4(Imm(uint64(lane)), m, v[i], v[i])
				}
			}
		}
		for i, o := range acts.Transpose4(v) {
			f := ZMM()
			VMULPS_BCST(Mem{Base: tokens, Disp: 4 * (4*quad + i)}, s, f)
			VCVTDQ2PS(o, o)
			VMULPS(f, o, o)
			VMOVUPS(o, Mem{Base: out})
			ADDQ(ldy, out)
		}
	}
	ADDQ(U32(16*128), acc)
	ADDQ(Imm(64), rows)
	ADDQ(Imm(64), y)
	DECQ(group)
	JNE(LabelRef("loop"))
	emit.Done()
}
