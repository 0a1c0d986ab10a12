package ternary

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// AVX-512 VNNI multiply-add. A register holds 16 rows × 4 bytes; trits enter
// VPDPBUSD as digits 0..2, and the accumulators start at −Σa to take the digit
// offset out again. Sums are exact in int32.

// vnniPrefetch is the distance by which kernels of few tokens prefetch weights, in bytes.
const vnniPrefetch = 8192

func VNNI() {
	bitPairs := bitPairTable()
	for _, n := range []int{1, 2, 3, 4} {
		vnni(bitPairs, 4, n)
		vnni(bitPairs, 5, n)
	}
}

// bitPairTable holds at v < 81 the digits of four trits, base 3, as bit pairs.
func bitPairTable() Mem {
	return emit.Table("crumbs", emit.Fill(128, func(v int) byte {
		b := 0
		for j := range 4 {
			b |= v % 3 << (2 * j)
			v /= 3
		}
		return byte(b)
	}))
}

// vnni emits the product of 64 rows and n tokens over all blocks.
func vnni(bitPairs Mem, g, n int) {
	name := fmt.Sprintf("vnni%dx64x%dAVX512", g, n)
	emit.Text(name, "func(w *byte, act *int8, blocks int, negSum *int32, tokens, rows, y *float32, ldy int)")
	vnniTiles.Add(n, byTrits(g))
	emit.Contract(fmt.Sprintf("%s sets y[%d][64] = float32(sum)·(tokens·rows) for w[blocks][64][4] and", name, n),
		fmt.Sprintf("act[blocks][%d][%d][4]; rows of y are ldy floats apart. blocks is positive.", g, n))
	w, act, blocks := emit.Arg("w"), emit.Arg("act"), emit.Arg("blocks")
	v := newVNNI(4, n)
	s := newMadBlock(g, n, w, act, bitPairs, v.sum)
	Label("loop")
	Comment("One block: digits, a position at a time, times their activations")
	for r := range 4 {
		PREFETCHT0(Mem{Base: w, Disp: 64*r + vnniPrefetch})
	}
	for _, op := range s.ops() {
		op()
	}
	s.next()
	DECQ(blocks)
	JNE(LabelRef("loop"))
	v.finish()
}

func broadcast(b uint32) reg.VecVirtual {
	z, t := ZMM(), GP32()
	MOVL(U32(b*0x01010101), t)
	VPBROADCASTD(t, z)
	return z
}

// vnniSums are the accumulators [rm][n]. One token has a second set: four
// chains of latency 4 would allow one VPDPBUSD a cycle of the two there could be.
type vnniSums struct{ sets [][][]reg.VecVirtual }

func newVNNI(rm, n int) *vnniSums { return newVNNISets(rm, n, 1+1/n) }

// newVNNISets makes sums with a number of sets.
func newVNNISets(rm, n, sets int) *vnniSums {
	corr := emit.Arg("negSum")
	v := &vnniSums{}
	for s := range sets {
		set := make([][]reg.VecVirtual, rm)
		for r := range set {
			set[r] = make([]reg.VecVirtual, n)
			for i := range set[r] {
				z := ZMM()
				if set[r][i] = z; s == 0 {
					VPBROADCASTD(Mem{Base: corr, Disp: 4 * i}, z)
				} else {
					VPXORD(z, z, z)
				}
			}
		}
		v.sets = append(v.sets, set)
	}
	return v
}

// sum returns the set that plane j adds to.
func (v *vnniSums) sum(j int) [][]reg.VecVirtual { return v.sets[j%len(v.sets)] }

func (v *vnniSums) finish() {
	Comment("Scale the sums and store them, token by token")
	sums := v.sets[0]
	for _, more := range v.sets[1:] {
		for r := range more {
			VPADDD(more[r][0], sums[r][0], sums[r][0])
		}
	}
	y, ldy, tokens, rows := emit.Arg("y"), emit.Arg("ldy"), emit.Arg("tokens"), emit.Arg("rows")
	SHLQ(Imm(2), ldy)
	scale := make([]reg.VecVirtual, len(sums))
	for r := range scale {
		scale[r] = ZMM()
		VMOVUPS(Mem{Base: rows, Disp: 64 * r}, scale[r])
	}
	for i := range sums[0] {
		for r := range sums {
			f := ZMM()
			VMULPS_BCST(Mem{Base: tokens, Disp: 4 * i}, scale[r], f)
			VCVTDQ2PS(sums[r][i], sums[r][i])
			VMULPS(f, sums[r][i], sums[r][i])
			VMOVUPS(sums[r][i], Mem{Base: y, Disp: 64 * r})
		}
		if i+1 < len(sums[0]) {
			ADDQ(ldy, y)
		}
	}
	emit.Done()
}
