package grouped

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
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
//	Q6   96        228     120    40.0    64        140     106    53.0
//	Q8   96        156      84    32.0    64        105      89    44.5
//
// The float32 operations are those of the other tiles, in the same order.
func pair(p packing, tokens int) {
	t := beginPair(p, tokens)
	if p.super() {
		t.pairQ6()
	} else {
		t.pairSums(map[string]func() func(*bandPair){"Q4": t.pairQ4, "Q4M": t.pairQ4, "Q41": t.pairQ4, "Q8": t.pairQ8, "FP4": t.pairQ4}[p.name]())
	}
	emit.Done()
}

// pairSignature is the signature of tiles of two bands and several tokens.
const pairSignature = "func(y *float32, ld int, codes *byte, scales *byte, stride int, acts *byte, lda int, groups int, next uintptr)"

// beginPair begins such a tile. Weights that come from memory would be waited for,
// so it brings the next bands into L2, as tiles of one token do.
func beginPair(p packing, tokens int) *tile {
	name := fmt.Sprintf("grouped%sAVX512x2x%d", p.name, tokens)
	emit.Text(name, p.signature(pairSignature))
	p.in(pairTables).Add(tokens, p.keys("AVX512")...)
	emit.Contract(fmt.Sprintf("%s adds to y[%d][%d] (ld values a token) the products of two bands of %s that are", name, tokens, 2*dense.BandRows, p.name),
		"stride bytes apart with rows of activation records that are lda bytes apart. It prefetches as many bytes at",
		"next, which need not be memory at all.")
	t := &tile{packing: p, bands: 2, tokens: tokens}
	t.parameters()
	t.next = Load(Param("next"), GP64()).(reg.GPVirtual)
	t.bands, t.fetched = 1, 2 // of the loop: a group is emitted for both at once
	return t
}

// bandPair is a register for each band and token.
type bandPair [2][]reg.VecVirtual

// pairSums runs group over all groups with the sums of y in registers.
func (t *tile) pairSums(group func(*bandPair)) {
	sums := &bandPair{row(t.tokens), row(t.tokens)}
	sums.each(func(b, i int, v reg.VecVirtual) { VMOVUPS(t.y.At(i, 64*b), v) })
	t.loop(nil, func() { group(sums) }, nil)
	sums.each(func(b, i int, v reg.VecVirtual) { VMOVUPS(v, t.y.At(i, 64*b)) })
}

func (s *bandPair) each(f func(b, i int, v reg.VecVirtual)) {
	for b := range s {
		for i, v := range s[b] {
			f(b, i, v)
		}
	}
}

// both calls f with the addresses of each band.
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
		VPBROADCASTD(t.acts.At(i, disp), a)
		for b := range sum {
			VPDPBUSD(a, code[b], sum[b][i])
		}
	}
}

// pairStart sets the sums of both bands to the dword at disp of the records, times
// 2^shift.
func (t *tile) pairStart(disp int, shift uint64) [2][]reg.VecVirtual {
	sum := [2][]reg.VecVirtual{row(t.tokens), row(t.tokens)}
	for i := range t.tokens {
		VPBROADCASTD(t.acts.At(i, disp), sum[0][i])
		if shift > 0 {
			VPSLLD(Imm(shift), sum[0][i], sum[0][i])
		}
		VMOVDQA64(sum[0][i], sum[1][i])
	}
	return sum
}

func (t *tile) pairQ4() func(sums *bandPair) {
	low := ZMM()
	emit.FillLanes(0x0f0f0f0f, low)
	level := t.levels(true)
	return func(sums *bandPair) {
		var sum [2][]reg.VecVirtual
		switch t.name {
		case "Q4":
			sum = t.pairStart(acts.RecSum8, 0)
		case "FP4":
			sum = t.pairStart(acts.RecSum8, 1)
		default:
			sum = [2][]reg.VecVirtual{row(t.tokens), row(t.tokens)}
			for i := range t.tokens {
				emit.Zero(sum[0][i])
				emit.Zero(sum[1][i])
			}
		}
		for p := range 4 {
			var raw, code [2]reg.VecVirtual
			t.both(func(b int) {
				raw[b], code[b] = ZMM(), ZMM()
				VMOVDQU64(t.code(p*planeBytes), raw[b])
				VPANDD(low, raw[b], code[b])
				level(code[b])
			})
			t.pairDot(sum, code, 4*p)
			for _, r := range raw {
				VPSRLW(Imm(4), r, r)
				VPANDD(low, r, r)
				level(r)
			}
			t.pairDot(sum, raw, 16+4*p)
		}
		t.both(func(b int) { t.wideFinish(sums[b], sum[b], t.wideScale(sum[b])) })
	}
}

func (t *tile) pairQ6() {
	codes := t.wideCodes()
	super := []*superSums{t.superMemory(0), t.superMemory(1)}
	t.loop(func() {
		super[0].begin()
		super[1].begin()
	}, func() {
		var first [2][]reg.VecVirtual
		for h := range 2 {
			sum := t.pairStart(acts.RecHalf32+4*h, t.doubled())
			for _, p := range codes.order {
				var code [2]reg.VecVirtual
				t.both(func(b int) { code[b] = codes.word(h, p, 0) })
				t.pairDot(sum, code, 16*h+4*p)
			}
			t.both(func(b int) { t.wideHalf(first[b], sum[b], h) })
			first = sum
		}
		t.both(func(b int) {
			for i, v := range first[b] {
				a := ZMM()
				VCVTDQ2PS(v, v)
				VBROADCASTSS(t.acts.At(i, acts.RecScale), a)
				super[b].add(i, 0, a, v)
			}
		})
	}, func() { t.both(func(b int) { super[b].end(t.wideScales()) }) })
}

func (t *tile) pairQ8() func(sums *bandPair) {
	offset := ZMM()
	emit.FillLanes(0x80808080, offset)
	return func(sums *bandPair) {
		Comment("codes become unsigned by adding 128; sums start at -128 times those of the activations")
		sum := t.pairStart(acts.RecSum8, 4)
		for j := range 8 {
			var code [2]reg.VecVirtual
			t.both(func(b int) {
				code[b] = ZMM()
				VPXORD(t.code(j*planeBytes), offset, code[b])
			})
			t.pairDot(sum, code, 4*j)
		}
		t.both(func(b int) { t.wideFinish(sums[b], sum[b], nil) })
	}
}
