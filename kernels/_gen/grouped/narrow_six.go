package grouped

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

func (t *tile) narrowQ6() {
	low, high := YMM(), YMM()
	emit.FillLanes(0x0f0f0f0f, low)
	emit.FillLanes(0x30303030, high)
	code := func(h, p int) func(v int) reg.VecVirtual {
		return func(v int) reg.VecVirtual {
			c := YMM()
			t.sixBits(h, p, v, low, high, c)
			return c
		}
	}
	super := t.superSums()
	spill := AllocLocal(t.tokens * dense.BandRows * 4) // the first half's sums: registers run out
	place := func(i, v int) Mem { return spill.Offset((i*vectors + v) * 32) }
	t.loop(func() { super[t.band].begin() }, func() {
		for h := range 2 {
			Commentf("columns %d to %d, sums from -32 times those of the activations", 16*h, 16*h+15)
			sum := grid(t.tokens)
			t.each(func(i, v int) { VPBROADCASTD(t.acts.At(i, acts.RecStart6+4*h), sum[i][v]) })
			for p := range 4 {
				t.addWord(sum, 16*h+4*p, false, code(h, p))
			}
			sc := t.pairs(32+16*h, 32+16*h)
			t.each(func(i, v int) { VPMADDWD(sc[v], sum[i][v], sum[i][v]) })
			if h == 0 {
				t.each(func(i, v int) { VMOVDQU(sum[i][v], place(i, v)) })
				continue
			}
			t.each(func(i, v int) { VPADDD(place(i, v), sum[i][v], sum[i][v]) })
			t.superAdd(super[t.band], sum)
		}
	}, func() {
		super[t.band].end(t.superScales())
	})
}

// superAdd adds the int32 sums of a group to those of its superblock.
func (t *tile) superAdd(super *superSums, sum [][]reg.VecVirtual) {
	for i := range t.tokens {
		a := YMM()
		VBROADCASTSS(t.acts.At(i, acts.RecScale), a)
		for v := range vectors {
			VCVTDQ2PS(sum[i][v], sum[i][v])
			super.add(i, v, a, sum[i][v])
		}
	}
}

// sixBits sets code to the 6-bit codes of word 4h+p, vector v.
func (t *tile) sixBits(h, p, v int, low, high, code reg.VecVirtual) {
	nibbles := t.code(p*planeBytes + v*32)
	if h == 0 {
		VPAND(nibbles, low, code)
	} else {
		VMOVDQU(nibbles, code)
		VPSRLW(Imm(4), code, code)
		VPAND(low, code, code)
	}
	pair := YMM()
	VMOVDQU(t.code(nibbleBytes+h*planeBytes+v*32), pair)
	switch p { // field p moves to bits 4 and 5; the mask drops the others
	case 0, 1:
		VPSLLW(Imm(uint64(4-2*p)), pair, pair)
	case 3:
		VPSRLW(Imm(2), pair, pair)
	}
	VPAND(high, pair, pair)
	VPOR(pair, code, code)
}
