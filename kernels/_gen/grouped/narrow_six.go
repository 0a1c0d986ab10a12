package grouped

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// superCodes loads the codes of superblocks as unsigned bytes.
type superCodes struct {
	order [4]int                           // in which words of a half are to be asked for
	word  func(h, p, v int) reg.VecVirtual // word 4h+p of the current band, vector v
}

// inOrder is that of codes that do not share what unfolds them.
var inOrder = [4]int{0, 1, 2, 3}

// narrowCodes loads those of AVX2 tiles.
func (t *tile) narrowCodes() superCodes {
	if t.raised > 0 {
		return t.levelCodes(32)
	}
	low, high := YMM(), YMM()
	emit.FillLanes(0x0f0f0f0f, low)
	emit.FillLanes(0x30303030, high)
	return superCodes{inOrder, func(h, p, v int) reg.VecVirtual {
		c := YMM()
		t.sixBits(h, p, v, low, high, c)
		return c
	}}
}

// doubled is the shift of what sums start from, which records have for codes that are 32 above
// their value.
func (p packing) doubled() uint64 {
	if p.raised == 64 {
		return 1
	}
	return 0
}

// halfScales is where the byte scales of half h are.
func (p packing) halfScales(h int) int {
	if p.scales == 1 {
		h = 0
	}
	return 2*dense.BandRows + dense.BandRows*h
}

func (t *tile) narrowQ6() {
	codes := t.narrowCodes()
	super := t.superSums()
	spill := AllocLocal(t.tokens * dense.BandRows * 4) // the first half's sums: registers run out
	place := func(i, v int) Mem { return spill.Offset((i*vectors + v) * 32) }
	t.loop(func() { super[t.band].begin() }, func() {
		for h := range 2 {
			Commentf("columns %d to %d, sums from -%d times those of the activations", 16*h, 16*h+15, max(32, t.raised))
			sum := grid(t.tokens)
			t.each(func(i, v int) {
				VPBROADCASTD(t.acts.At(i, acts.RecStart6+4*h), sum[i][v])
				if t.doubled() > 0 {
					VPADDW(sum[i][v], sum[i][v], sum[i][v])
				}
			})
			for _, p := range codes.order {
				t.addWord(sum, 16*h+4*p, false, func(v int) reg.VecVirtual { return codes.word(h, p, v) })
			}
			sc := t.pairs(t.halfScales(h), t.halfScales(h))
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
