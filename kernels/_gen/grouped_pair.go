package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pairTokens are the most tokens of a tile of two bands: as many as there are
// registers for.
const pairTokens = 6

// pair generates an AVX-512 VNNI tile of two bands. An activation is then
// broadcast once for two products; a tile of one band has a load a product,
// and loads bound it. Operations of a group of 32 columns, and the cycles that
// 64 VPDPBUSD (32 alone) take at 2 of them, 4 vector operations and 2 loads a
// cycle, as was measured on Zen 5:
//
//	     two bands, 6 tokens             one band, 8 tokens
//	     VPDPBUSD  vector  loads  cycles  VPDPBUSD  vector  loads  cycles
//	Q4   96        158      76    32.0    64        101      85    42.5
//	Q4M  96        204      88    34.0    64        130      88    44.0
//	Q6   96        242     122    40.7    64        149     107    53.5
//	Q8   96        156      84    32.0    64        105      89    44.5
//
// The float32 operations are those of the other tiles, in the same order.
func pair(p packing, tokens int) {
	t := begin(p, "AVX512", 2, tokens)
	t.bands = 1 // of the loop: a group is emitted for both at once
	group := map[string]func() (func(), *pairSums){"Q4": t.pairQ4, "Q4M": t.pairQ4, "Q6": t.pairQ6, "Q8": t.pairQ8}[p.name]
	emit, sums := group()
	sums.each(t, func(b, i int, v reg.VecVirtual) { VMOVUPS(t.y.at(i, 64*b), v) })
	t.loop(emit)
	sums.each(t, func(b, i int, v reg.VecVirtual) { VMOVUPS(v, t.y.at(i, 64*b)) })
	done()
}

// pairSums are the float32 sums [band][token] in registers; nil: they stay in y.
type pairSums [2][]reg.VecVirtual

func (s *pairSums) each(t *tile, f func(b, i int, v reg.VecVirtual)) {
	if s == nil {
		return
	}
	for b := range s {
		for i := range t.tokens {
			f(b, i, s[b][i])
		}
	}
}

// both calls f with the addresses of each band in turn.
func (t *tile) both(f func(b int)) {
	for t.band = range 2 {
		f(t.band)
	}
	t.band = 0
}

// pairDot adds the products of four columns, bytes at disp of the records.
func (t *tile) pairDot(sum [2][]reg.VecVirtual, code [2]reg.VecVirtual, disp int) {
	for i := range t.tokens {
		a := ZMM()
		VPBROADCASTD(t.acts.at(i, disp), a)
		for b := range sum {
			VPDPBUSD(a, code[b], sum[b][i])
		}
	}
}

// pairStart sets the sums of both bands to the dword at disp of the records.
func (t *tile) pairStart(disp int) [2][]reg.VecVirtual {
	sum := [2][]reg.VecVirtual{row(t.tokens), row(t.tokens)}
	for i := range t.tokens {
		VPBROADCASTD(t.acts.at(i, disp), sum[0][i])
		VMOVDQA64(sum[0][i], sum[1][i])
	}
	return sum
}

func (t *tile) pairQ4() (func(), *pairSums) {
	low := ZMM()
	fillLanes(0x0f0f0f0f, low)
	sums := &pairSums{row(t.tokens), row(t.tokens)}
	return func() {
		var sum [2][]reg.VecVirtual
		if t.name == "Q4" {
			sum = t.pairStart(recSum8)
		} else {
			sum = [2][]reg.VecVirtual{row(t.tokens), row(t.tokens)}
			for i := range t.tokens {
				zero(sum[0][i])
				zero(sum[1][i])
			}
		}
		for p := range 4 {
			var raw, code [2]reg.VecVirtual
			t.both(func(b int) {
				raw[b], code[b] = ZMM(), ZMM()
				VMOVDQU64(t.code(p*planeBytes), raw[b])
				VPANDD(low, raw[b], code[b])
			})
			t.pairDot(sum, code, 4*p)
			for _, r := range raw {
				VPSRLW(Imm(4), r, r)
				VPANDD(low, r, r)
			}
			t.pairDot(sum, raw, 16+4*p)
		}
		t.both(func(b int) {
			if t.name == "Q4" {
				t.wideFinish(sums[b], sum[b], nil)
				return
			}
			t.wideFinish(sums[b], sum[b], t.wideScale(sum[b]))
		})
	}, sums
}

func (t *tile) pairQ6() (func(), *pairSums) {
	low, high := ZMM(), ZMM()
	fillLanes(0x0f0f0f0f, low)
	fillLanes(0x30303030, high)
	return func() {
		var first [2][]reg.VecVirtual
		for h := range 2 {
			sum := t.pairStart(recHalf32 + 4*h)
			for p := range 4 {
				var code [2]reg.VecVirtual
				t.both(func(b int) { code[b] = t.wideSixBits(h, p, low, high) })
				t.pairDot(sum, code, 16*h+4*p)
			}
			t.both(func(b int) { t.wideHalf(first[b], sum[b], h) })
			first = sum
		}
		t.both(func(b int) {
			d := ZMM()
			VCVTPH2PS(t.scaleAt(0), d)
			for i, v := range first[b] {
				a := ZMM()
				VCVTDQ2PS(v, v)
				VMULPS(d, v, v)
				VBROADCASTSS(t.acts.at(i, recScale), a)
				VFMADD213PS(t.y.at(i, 64*b), a, v)
				VMOVUPS(v, t.y.at(i, 64*b))
			}
		})
	}, nil
}

func (t *tile) pairQ8() (func(), *pairSums) {
	offset := ZMM()
	fillLanes(0x80808080, offset)
	sums := &pairSums{row(t.tokens), row(t.tokens)}
	return func() {
		Comment("codes become unsigned by adding 128; sums start at -128 times those of the activations")
		sum := [2][]reg.VecVirtual{row(t.tokens), row(t.tokens)}
		for i := range t.tokens {
			VPBROADCASTD(t.acts.at(i, recSum8), sum[0][i])
			VPSLLD(Imm(4), sum[0][i], sum[0][i])
			VMOVDQA64(sum[0][i], sum[1][i])
		}
		for j := range 8 {
			var code [2]reg.VecVirtual
			t.both(func(b int) {
				code[b] = ZMM()
				VPXORD(t.code(j*planeBytes), offset, code[b])
			})
			t.pairDot(sum, code, 4*j)
		}
		t.both(func(b int) { t.wideFinish(sums[b], sum[b], nil) })
	}, sums
}
