package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unpack generates the AVX2 routine that widens 6-bit codes to bytes, in planes
// as those of Q8. It pays when many tokens pass over the same codes.
func unpack() {
	text("unpackQ6AVX2", "func(dst *byte, src *byte, groups int)")
	contract("unpackQ6AVX2 widens the codes of groups ≥ 1 groups of a Q6 band to bytes, 512 a group.")
	dst := param("dst")
	src := param("src")
	groups := param("groups")
	low, high := YMM(), YMM()
	sixBitMasks(low, high)
	Label("loop")
	for h := range 2 {
		for p := range 4 {
			for v := range vectors {
				code := YMM()
				sixBits(func(disp int) Mem { return Mem{Base: src, Disp: disp} }, h, p, v, low, high, code)
				VMOVDQU(code, Mem{Base: dst, Disp: (4*h+p)*planeBytes + 32*v})
			}
		}
	}
	ADDQ(U32(nibbleBytes+2*planeBytes), src)
	ADDQ(U32(8*planeBytes), dst)
	DECQ(groups)
	JNE(LabelRef("loop"))
	done()
}

func sixBitMasks(low, high reg.VecVirtual) {
	fillLanes(0x0f0f0f0f, low)
	fillLanes(0x30303030, high)
}

// sixBits sets code to the 6-bit codes of step 4h+p, vector v.
func sixBits(at func(disp int) Mem, h, p, v int, low, high, code reg.VecVirtual) {
	nibbles := at(p*planeBytes + v*32)
	if h == 0 {
		VPAND(nibbles, low, code)
	} else {
		VMOVDQU(nibbles, code)
		VPSRLW(Imm(4), code, code)
		VPAND(low, code, code)
	}
	pair := YMM()
	VMOVDQU(at(nibbleBytes+h*planeBytes+v*32), pair)
	switch p { // field p moves to bits 4 and 5; the mask drops the others
	case 0, 1:
		VPSLLW(Imm(uint64(4-2*p)), pair, pair)
	case 3:
		VPSRLW(Imm(2), pair, pair)
	}
	VPAND(high, pair, pair)
	VPOR(pair, code, code)
}
