package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Lookup beside multiply-add in one AVX-512 instruction stream: table rows are
// added by the load ports and the adders while VPDPBUSD keeps the multipliers
// busy, each method with tokens of its own, over one copy of the weights.

const (
	wideRowBytes  = 64 // a table row of 32 tokens of int16
	hybridLookups = 32 // beside one step of 64 rows × 4 tokens
)

// tableRows is the distance of lookup tables in rows. Crumbs leave holes in
// a table (a digit is never 3); at this distance the rows that are there
// spread over the sets of an L1 of 64 sets so that 8 tables fill at most 12
// ways of each, as many as 48 KiB have.
func tableRows(g int) int {
	if g == 5 {
		return 243
	}
	return 185
}

func ternaryHybrid() {
	crumbs := crumbTable()
	hybrid(crumbs, 4, 2)
	hybrid(crumbs, 4, 1)
	hybrid(crumbs, 5, 1)
	hybridFinish()
	for _, g := range []int{4, 5} {
		wideBuild(g)
	}
	wideFlush()
	wideFinish()
	lanes32()
}

// hybrid emits steps of two products at once. With 4·blocks lookups a row, a
// step takes as many rows as make 32 lookups, which cover as many weights ×
// tokens as its VPDPBUSD do.
//
// Operations of a step (I2, 2 blocks; I1), against 32 and 40 cycles of VPDPBUSD at 2 a cycle:
//
//	vector   64 + 28 + 32 = 124;  80 + 56 + 32 = 168   of 4 a cycle
//	loads    20 + 32 + 4 + 4 = 60; 24 + 32 + 8 + 4 = 68 of 2 a cycle
//	stores   4; 8                                       of 1 a cycle
func hybrid(crumbs Mem, g, blocks int) {
	name, rowsPerStep := fmt.Sprintf("hybrid%dx%dAVX512", g, blocks), hybridLookups/(4*blocks)
	text(name, "func(acc *int32, w *byte, act *int8, steps int, sums, tables *int16, index *byte, left, strip int)")
	contract(fmt.Sprintf("%s adds to acc[4][64] the products of w[steps][64][4] and act[steps][%d][4][4], digits", name, g),
		fmt.Sprintf("times codes, and to %d·steps rows of sums[][32] what %d bytes of each name in as many tables of", rowsPerStep, 4*blocks),
		fmt.Sprintf("%d rows. index is where the first row's bytes stand, %d·left rows before the end of their strip;", tableRows(g), rowsPerStep),
		"strip is the distance of strips in bytes. steps is positive, left in [1, 64/rows of a step].")
	acc, w, act, steps := param("acc"), param("w"), param("act"), param("steps")
	sums, tables, index, left, strip := param("sums"), param("tables"), param("index"), param("left"), param("strip")
	z := make([][]reg.VecVirtual, 4)
	for r := range z {
		z[r] = make([]reg.VecVirtual, 4)
		for i := range z[r] {
			z[r][i] = ZMM()
			VMOVDQU64(Mem{Base: acc, Disp: 256*i + 64*r}, z[r][i])
		}
	}
	mad := newMadStep(g, 4, w, act, crumbs, func(int) [][]reg.VecVirtual { return z })
	Label("loop")
	Comment("A step of multiply-adds, its instructions evenly mixed with the lookups")
	mix(mad.ops(), lookups(g, blocks, rowsPerStep, sums, tables, index))
	mad.next()
	ADDQ(U32(uint32(wideRowBytes*rowsPerStep)), sums)
	ADDQ(Imm(uint64(4*rowsPerStep)), index)
	DECQ(left)
	JNE(LabelRef("same"))
	Comment("The next strip; ask for the one after it")
	MOVQ(U32(uint32(stripRows/rowsPerStep)), left)
	SUBQ(U32(stripBytes), index)
	ADDQ(strip, index)
	for line := range 4 * blocks {
		PREFETCHT0(Mem{Base: index, Index: strip, Scale: 1, Disp: 64 * line})
	}
	Label("same")
	DECQ(steps)
	JNE(LabelRef("loop"))
	acc = param("acc")
	for r := range z {
		for i := range z[r] {
			VMOVDQU64(z[r][i], Mem{Base: acc, Disp: 256*i + 64*r})
		}
	}
	done()
}

// lookups are the instructions that look up rows, two at a time.
func lookups(g, blocks, rows int, sums, tables, index reg.Register) []func() {
	var ops []func()
	q := make([]reg.GPVirtual, blocks)
	for r := range rows {
		if r%2 == 0 {
			for b := range q {
				ops = append(ops, func() { q[b] = GP64(); MOVQ(Mem{Base: index, Disp: stripBytes*b + 4*r}, q[b]) })
			}
		}
		var z reg.VecVirtual
		for k := range 4 * blocks {
			ops = append(ops, func() {
				// Rotating puts a byte, times the size of a row, where the mask leaves it.
				o := GP64()
				RORXQ(Imm(uint64((8*(r%2*4+k%4)-6+64)%64)), q[k/4], o)
				ANDL(U32(0xff*wideRowBytes), o.As32())
				m := Mem{Base: tables, Index: o, Scale: 1, Disp: k * tableRows(g) * wideRowBytes}
				if k == 0 {
					z = ZMM()
					VMOVDQU64(m, z)
				} else {
					VPADDW(m, z, z)
				}
			})
		}
		ops = append(ops,
			func() { VPADDW(Mem{Base: sums, Disp: wideRowBytes * r}, z, z) },
			func() { VMOVDQU64(z, Mem{Base: sums, Disp: wideRowBytes * r}) })
	}
	return ops
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
	text("hybridFinishAVX512", "func(y *float32, ldy int, acc, negSum *int32, tokens, rows *float32)")
	contract("hybridFinishAVX512 sets y[4][64] = float32(acc[4][64]+negSum[4])·(tokens[4]·rows[64]); rows of y are ldy floats apart.")
	y, ldy, acc, neg, tokens, rows := param("y"), param("ldy"), param("acc"), param("negSum"), param("tokens"), param("rows")
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
	done()
}
