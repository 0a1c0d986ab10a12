package ternary

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Lookup and multiply-add in one AVX-512 instruction stream: table rows are
// added by the load ports and the adders while VPDPBUSD keeps the multipliers
// busy, each method with tokens of its own, over one copy of the weights.

const (
	wideRowBytes  = 64 // a table row of 32 tokens of int16
	hybridLookups = 32 // with one block of 64 rows × 4 tokens
)

// tableRows returns the distance of lookup tables in rows. Bit pairs leave holes in
// a table (a digit is never 3); at this distance the rows that are there
// spread over the sets of an L1 of 64 sets so that 8 tables fill at most 12
// ways of each, as many as 48 KiB have.
func tableRows(g int) int {
	if g == 5 {
		return 243
	}
	return 185
}

func Hybrid() {
	bitPairs := bitPairTable()
	for _, widen := range []bool{false, true} {
		hybrid(bitPairs, 4, 2, widen)
		hybrid(bitPairs, 4, 1, widen)
		hybrid(bitPairs, 5, 1, widen)
	}
	hybridFinish()
	for _, g := range []int{4, 5} {
		wideBuild(g)
	}
	wideFinish()
}

// hybrid emits two products at once: with each block of multiply-adds, lookups for
// as many rows as make 32 of them, with 4·blocks a row. They cover as many weights ×
// tokens as its VPDPBUSD do.
//
// Operations of a block (I2, 2 blocks; I1), against 32 and 40 cycles of VPDPBUSD at 2 a cycle:
//
//	vector   64 + 28 + 32 = 124;  80 + 56 + 32 = 168   of 4 a cycle
//	loads    20 + 32 + 4 + 4 = 60; 24 + 32 + 8 + 4 = 68 of 2 a cycle
//	stores   4; 8                                       of 1 a cycle
//
// widen emits the last pass before the int16 sums could overflow.
func hybrid(bitPairs Mem, g, blocks int, widen bool) {
	stage, rowsPerBlock := "", hybridLookups/(4*blocks)
	if widen {
		stage = "Widen"
	}
	name := fmt.Sprintf("hybrid%s%dx%dAVX512", stage, g, blocks)
	emit.Text(name, "func(acc *int32, w *byte, act *int8, steps int, wide *int32, sums, tables *int16, index *byte, left, strip int)")
	does := fmt.Sprintf("to %d·steps rows of sums[][32]", rowsPerBlock)
	if widen {
		does = "to as many rows of wide[][32], with those of sums[][32], which it clears,"
	}
	emit.Contract(fmt.Sprintf("%s adds to acc[4][64] the products of w[steps][64][4] and act[steps][%d][4][4],", name, g),
		fmt.Sprintf("digits times codes, and %s what %d bytes of each of %d·steps rows name in as", does, 4*blocks, rowsPerBlock),
		fmt.Sprintf("many tables of %d rows. index is where the first row's bytes stand, %d·left rows before the end", tableRows(g), rowsPerBlock),
		fmt.Sprintf("of their strip; strip is the distance of strips in bytes. steps is positive, left in [1, %d].", stripRows/rowsPerBlock))
	acc, w, act, madBlocks := emit.Arg("acc"), emit.Arg("w"), emit.Arg("act"), emit.Arg("steps")
	left, strip := emit.Arg("left"), emit.Arg("strip")
	look := lookups{g: g, blocks: blocks, rows: rowsPerBlock, sums: emit.Arg("sums"), tables: emit.Arg("tables"), index: emit.Arg("index")}
	if widen {
		look.wide = emit.Arg("wide")
	}
	z := make([][]reg.VecVirtual, 4)
	for r := range z {
		z[r] = make([]reg.VecVirtual, 4)
		for i := range z[r] {
			z[r][i] = ZMM()
			VMOVDQU64(Mem{Base: acc, Disp: 256*i + 64*r}, z[r][i])
		}
	}
	mad := newMadBlock(g, 4, w, act, bitPairs, func(int) [][]reg.VecVirtual { return z })
	Label("loop")
	Comment("A step of multiply-adds, its instructions evenly mixed with the lookups")
	mix(mad.ops(), look.ops())
	mad.next()
	look.next()
	DECQ(left)
	JNE(LabelRef("same"))
	Comment("The next strip; ask for the one after it")
	MOVQ(U32(uint32(stripRows/rowsPerBlock)), left)
	SUBQ(U32(stripBytes), look.index)
	ADDQ(strip, look.index)
	for line := range 4 * blocks {
		PREFETCHT0(Mem{Base: look.index, Index: strip, Scale: 1, Disp: 64 * line})
	}
	Label("same")
	DECQ(madBlocks)
	JNE(LabelRef("loop"))
	acc = emit.Arg("acc")
	for r := range z {
		for i := range z[r] {
			VMOVDQU64(z[r][i], Mem{Base: acc, Disp: 256*i + 64*r})
		}
	}
	emit.Done()
}

// lookups adds up the table rows that some blocks of each of some rows name.
type lookups struct {
	g, blocks, rows           int
	sums, tables, index, wide reg.Register // wide: nil unless int16 sums end here
}

// ops returns the instructions, two rows at a time.
func (l *lookups) ops() []func() {
	var ops []func()
	q := make([]reg.GPVirtual, l.blocks)
	for r := range l.rows {
		if r%2 == 0 {
			for b := range q {
				ops = append(ops, func() { q[b] = GP64(); MOVQ(Mem{Base: l.index, Disp: stripBytes*b + 4*r}, q[b]) })
			}
		}
		var z reg.VecVirtual
		for k := range 4 * l.blocks {
			ops = append(ops, func() {
				// Rotating puts a byte, times the size of a row, where the mask leaves it.
				o := GP64()
				RORXQ(Imm(uint64((8*(r%2*4+k%4)-6+64)%64)), q[k/4], o)
				ANDL(U32(0xff*wideRowBytes), o.As32())
				m := Mem{Base: l.tables, Index: o, Scale: 1, Disp: k * tableRows(l.g) * wideRowBytes}
				if k == 0 {
					z = ZMM()
					VMOVDQU64(m, z)
				} else {
					VPADDW(m, z, z)
				}
			})
		}
		sums := Mem{Base: l.sums, Disp: wideRowBytes * r}
		ops = append(ops, func() { VPADDW(sums, z, z) })
		if l.wide == nil {
			ops = append(ops, func() { VMOVDQU64(z, sums) })
			continue
		}
		widen := func(half int) {
			v, m := ZMM(), Mem{Base: l.wide, Disp: 2*wideRowBytes*r + 64*half}
			if half == 1 {
				v = z
				VEXTRACTI64X4(Imm(1), z, z.AsY())
			}
			VPMOVSXWD(z.AsY(), v)
			VPADDD(m, v, v)
			VMOVDQU64(v, m)
		}
		ops = append(ops, func() { widen(0) }, func() { widen(1) },
			func() { VPXORD(z, z, z) }, func() { VMOVDQU64(z, sums) })
	}
	return ops
}

// next moves on to the following rows.
func (l *lookups) next() {
	ADDQ(U32(uint32(wideRowBytes*l.rows)), l.sums)
	ADDQ(Imm(uint64(4*l.rows)), l.index)
	if l.wide != nil {
		ADDQ(U32(uint32(2*wideRowBytes*l.rows)), l.wide)
	}
}

// mix emits two lists of instructions, each in its order, evenly mixed.
func mix(a, b []func()) {
	done := 0
	for i, f := range a {
		f()
		for ; done < len(b) && done*len(a) < (i+1)*len(b); done++ {
			b[done]()
		}
	}
}

// hybridFinish takes the digits' offset out, scales the sums and stores them.
func hybridFinish() {
	emit.Text("hybridFinishAVX512", "func(y *float32, ldy int, acc, negSum *int32, tokens, rows *float32)")
	emit.Contract("hybridFinishAVX512 sets y[4][64] = float32(acc[4][64]+negSum[4])·(tokens[4]·rows[64]); rows of y are ldy floats apart.")
	y, ldy, acc, neg, tokens, rows := emit.Arg("y"), emit.Arg("ldy"), emit.Arg("acc"), emit.Arg("negSum"), emit.Arg("tokens"), emit.Arg("rows")
	SHLQ(Imm(2), ldy)
	scale := make([]reg.VecVirtual, 4)
	for r := range scale {
		scale[r] = ZMM()
		VMOVUPS(Mem{Base: rows, Disp: 64 * r}, scale[r])
	}
	for i := range 4 {
		n := ZMM()
		VPBROADCASTD(Mem{Base: neg, Disp: 4 * i}, n)
		for r := range scale {
			v, f := ZMM(), ZMM()
			VPADDD(Mem{Base: acc, Disp: 256*i + 64*r}, n, v)
			VMULPS_BCST(Mem{Base: tokens, Disp: 4 * i}, scale[r], f)
			VCVTDQ2PS(v, v)
			VMULPS(f, v, v)
			VMOVUPS(v, Mem{Base: y, Disp: 64 * r})
		}
		if i < 3 {
			ADDQ(ldy, y)
		}
	}
	emit.Done()
}
