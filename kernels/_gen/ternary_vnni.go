package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// AVX-512 VNNI multiply-add. A register holds 16 rows × 4 bytes; trits enter
// VPDPBUSD as digits 0..2, and the accumulators start at −Σa to take the digit
// offset out again. Sums are exact in int32.

// vnniPrefetch is how far ahead of use the kernels of few tokens ask for weights.
const vnniPrefetch = 8192

func ternaryVNNI() {
	// crumbs[v] holds the trits 0..3 of an I1 byte v as digits of two bits, as I2 has them.
	crumbs := table("crumbs", fill(256, func(v int) byte {
		b := 0
		for j := range 4 {
			b |= v % 3 << (2 * j)
			v /= 3
		}
		return byte(b)
	}))
	for _, n := range []int{1, 2, 4} {
		vnni(Mem{}, 4, 4, n)
		vnni(crumbs, 5, 4, n)
	}
	vnni(crumbs, 5, 2, 8)
}

// vnni emits the product of 16·rm rows and n tokens over all blocks.
func vnni(crumbs Mem, g, rm, n int) {
	name := fmt.Sprintf("vnni%dx%dx%dAVX512", g, 16*rm, n)
	text(name, "func(w *byte, act *int8, blocks int, negSum *int32, tokens, rows, y *float32, ldy int)")
	contract(fmt.Sprintf("%s sets y[%d][%d] = float32(sum)·(tokens·rows) for the first %d rows of w[blocks][64][4] and", name, n, 16*rm, 16*rm),
		fmt.Sprintf("act[blocks][%d][%d][4]; rows of y are ldy floats apart. blocks is positive.", g, n))
	w, act, blocks := param("w"), param("act"), param("blocks")
	v := newVNNI(rm, n)
	var tab [4]reg.VecVirtual // 256 bytes
	for i := range tab[:4*(g-4)] {
		tab[i] = ZMM()
		m := crumbs
		m.Disp = 64 * i
		VMOVDQU64(m, tab[i])
	}
	three := broadcast(3)
	var fifth fifthTrit
	if g == 5 {
		fifth = fifthTrit{broadcast(81), broadcast(162), broadcast(1)}
	}
	Label("loop")
	Comment("One block: digits, a position at a time, times their activations")
	if g == 4 {
		// All registers of a block first: their planes then share each broadcast.
		x := make([]reg.VecVirtual, rm)
		for r := range x {
			x[r] = ZMM()
			VMOVDQU64(Mem{Base: w, Disp: 64 * r}, x[r])
			if n <= 4 {
				PREFETCHT0(Mem{Base: w, Disp: 64*r + vnniPrefetch})
			}
		}
		for j := range 4 {
			p := make([]reg.VecVirtual, rm)
			for r := range p {
				p[r] = crumb(x[r], j, three)
			}
			for i := range n {
				b := ZMM()
				VPBROADCASTD(Mem{Base: act, Disp: (j*n + i) * 4}, b)
				for r := range p {
					VPDPBUSD(b, p[r], v.sum(j)[r][i])
				}
			}
		}
	} else {
		for r := range rm {
			x := ZMM()
			VMOVDQU64(Mem{Base: w, Disp: 64 * r}, x)
			if n <= 4 {
				PREFETCHT0(Mem{Base: w, Disp: 64*r + vnniPrefetch})
			}
			use := func(j int, p reg.VecVirtual) {
				for i := range n {
					VPDPBUSD_BCST(Mem{Base: act, Disp: (j*n + i) * 4}, p, v.sum(j)[r][i])
				}
			}
			use(4, fifth.digit(x))
			// VPERMI2B looks up 128 bytes: bit 7 chooses between two of them.
			k, c := K(), ZMM()
			VPMOVB2M(x, k)
			VMOVDQA64(x, c)
			VPERMI2B(tab[1], tab[0], c)
			VPERMI2B(tab[3], tab[2], x)
			VMOVDQU8(x, k, c)
			for j := range 4 {
				use(j, crumb(c, j, three))
			}
		}
	}
	ADDQ(U32(stripBytes), w)
	ADDQ(U32(uint32(4*g*n)), act)
	DECQ(blocks)
	JNE(LabelRef("loop"))
	v.finish()
}

// fifthTrit makes the digit of trit 4 by two comparisons.
type fifthTrit struct{ c81, c162, one reg.VecVirtual }

func (f fifthTrit) digit(x reg.VecVirtual) reg.VecVirtual {
	k1, k2, t := K(), K(), ZMM()
	VPCMPUB(Imm(5), f.c81, x, k1) // x >= 81
	VPCMPUB(Imm(5), f.c162, x, k2)
	VMOVDQU8_Z(f.one, k1, t)
	VPADDB(f.one, t, k2, t)
	return t
}

// crumb is digit j of each byte.
func crumb(x reg.VecVirtual, j int, three reg.VecVirtual) reg.VecVirtual {
	p := ZMM()
	if j == 0 {
		VPANDD(three, x, p)
		return p
	}
	VPSRLW(Imm(uint64(2*j)), x, p)
	VPANDD(three, p, p)
	return p
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

func newVNNI(rm, n int) *vnniSums {
	corr := param("negSum")
	v := &vnniSums{}
	for s := range 1 + 1/n {
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

// sum is the set that plane j adds to.
func (v *vnniSums) sum(j int) [][]reg.VecVirtual { return v.sets[j%len(v.sets)] }

func (v *vnniSums) finish() {
	Comment("Scale the sums and store them, token by token")
	sums := v.sets[0]
	for _, more := range v.sets[1:] {
		for r := range more {
			VPADDD(more[r][0], sums[r][0], sums[r][0])
		}
	}
	y, ldy, tokens, rows := param("y"), param("ldy"), param("tokens"), param("rows")
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
	done()
}
