package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tile is a kernel under construction: one band, some tokens.
type tile struct {
	packing
	tokens        int
	codes, scales reg.GPVirtual // of the current group; of the current scale unit
	small         reg.GPVirtual // byte scales of the current group
	acts, y       rows
	sums          [][]reg.VecVirtual // float32 sums [token][vector]; nil: they stay in y
}

// signature of every tile; groups ≥ 1, whole scale units.
const signature = "func(y *float32, ld int, codes *byte, scales *byte, acts *byte, lda int, groups int)"

func begin(p packing, isa string, tokens int) *tile {
	form := ""
	if p.bytes {
		form = "Bytes"
	}
	name := fmt.Sprintf("grouped%s%s%sx%d", p.name, form, isa, tokens)
	TEXT(name, NOSPLIT, signature)
	Doc(fmt.Sprintf("%s adds to y[%d][%d] (ld values a token) the products of one band of %s", name, tokens, bandRows, p.name),
		"with rows of activation records that are lda bytes apart.")
	Pragma("noescape")
	t := &tile{packing: p, tokens: tokens}
	t.codes = Load(Param("codes"), GP64()).(reg.GPVirtual)
	t.scales = Load(Param("scales"), GP64()).(reg.GPVirtual)
	t.acts = newRows("acts", "lda", 0, tokens)
	t.y = newRows("y", "ld", 2, tokens)
	return t
}

// loop runs group over all groups.
func (t *tile) loop(group func()) {
	groups := Load(Param("groups"), GP64()).(reg.GPVirtual)
	Label("loop")
	if t.unit == 1 {
		t.prefetch()
		group()
		ADDQ(U32(uint32(t.codeBytes)), t.codes)
		ADDQ(U32(uint32(t.unitBytes)), t.scales)
		t.acts.advance(actRecord)
		DECQ(groups)
		JNE(LabelRef("loop"))
		return
	}
	Comment("a superblock: its wide scales stay at hand while small walks over the narrow ones")
	t.small = GP64()
	MOVQ(t.scales, t.small)
	inner := GP64()
	MOVQ(U32(uint32(t.unit)), inner)
	Label("group")
	t.prefetch()
	group()
	ADDQ(U32(uint32(t.codeBytes)), t.codes)
	ADDQ(U32(2*bandRows), t.small)
	t.acts.advance(actRecord)
	DECQ(inner)
	JNE(LabelRef("group"))
	ADDQ(U32(uint32(t.unitBytes)), t.scales)
	SUBQ(U32(uint32(t.unit)), groups)
	JNE(LabelRef("loop"))
}

// prefetchAhead is the distance at which a single token's weights are asked for.
const prefetchAhead = 4096

// prefetch asks for the codes to come; with more tokens a band's weights are
// read again and again and come from L1.
func (t *tile) prefetch() {
	if t.tokens > 1 {
		return
	}
	for line := 0; line < t.codeBytes; line += 64 {
		PREFETCHT0(Mem{Base: t.codes, Disp: prefetchAhead + line})
	}
}

func (t *tile) code(disp int) Mem { return Mem{Base: t.codes, Disp: disp} }

// vectors is the number of registers of a band in AVX2.
const vectors = 2

// narrow generates an AVX2 tile. Products of 4- and 6-bit codes add up in
// int16 (see actRecord in acts_grouped.go for why they fit), those of bytes
// are widened one by one.
func narrow(p packing, tokens int) {
	t := begin(p, "AVX2", tokens)
	if tokens <= 2 {
		t.sums = grid(tokens)
		t.each(func(i, v int) { VMOVUPS(t.y.at(i, v*32), t.sums[i][v]) })
	}
	switch p.name {
	case "Q4", "Q4M":
		t.narrowQ4()
	case "Q6":
		t.narrowQ6()
	case "Q8":
		t.narrowQ8()
	}
	if t.sums != nil {
		t.each(func(i, v int) { VMOVUPS(t.sums[i][v], t.y.at(i, v*32)) })
	}
	VZEROUPPER()
	RET()
}

func grid(tokens int) [][]reg.VecVirtual {
	g := make([][]reg.VecVirtual, tokens)
	for i := range g {
		g[i] = []reg.VecVirtual{YMM(), YMM()}
	}
	return g
}

func (t *tile) each(f func(i, v int)) {
	for i := range t.tokens {
		for v := range vectors {
			f(i, v)
		}
	}
}

// step adds the products of four columns, bytes at disp of the records, to
// int16 sums.
func (t *tile) step(sum [][]reg.VecVirtual, code []reg.VecVirtual, disp int, fresh bool) {
	for i := range t.tokens {
		a := YMM()
		VPBROADCASTD(t.acts.at(i, disp), a)
		for v := range vectors {
			if fresh {
				VPMADDUBSW(a, code[v], sum[i][v])
				continue
			}
			m := YMM()
			VPMADDUBSW(a, code[v], m)
			VPADDW(m, sum[i][v], sum[i][v])
		}
	}
}

func (t *tile) narrowQ4() {
	low := YMM()
	fillLanes(0x0f0f0f0f, low)
	var ones reg.VecVirtual
	if t.name == "Q4" {
		ones = YMM()
		fillLanes(0x00010001, ones)
	}
	t.loop(func() {
		sum := grid(t.tokens)
		if t.name == "Q4" {
			Comment("sums start at -8 times those of the activations")
			t.each(func(i, v int) { VPBROADCASTD(t.acts.at(i, recStart4), sum[i][v]) })
		}
		for p := range 4 {
			raw, code := make([]reg.VecVirtual, vectors), make([]reg.VecVirtual, vectors)
			for v := range vectors {
				raw[v], code[v] = YMM(), YMM()
				VMOVDQU(t.code(p*planeBytes+v*32), raw[v])
				VPAND(low, raw[v], code[v])
			}
			t.step(sum, code, 4*p, p == 0 && t.name == "Q4M")
			for v := range vectors {
				VPSRLW(Imm(4), raw[v], raw[v])
				VPAND(low, raw[v], raw[v])
			}
			t.step(sum, raw, 16+4*p, false)
		}
		if t.name == "Q4" {
			t.each(func(i, v int) { VPMADDWD(ones, sum[i][v], sum[i][v]) })
			t.finish(sum, nil)
			return
		}
		sc := t.pairs(64, VPMOVZXBW)
		t.each(func(i, v int) { VPMADDWD(sc[v], sum[i][v], sum[i][v]) })
		least := make([]reg.VecVirtual, vectors)
		for v := range vectors {
			d := YMM()
			least[v] = YMM()
			VPMOVZXBD(Mem{Base: t.small, Disp: 80 + v*8}, least[v])
			VCVTDQ2PS(least[v], least[v])
			VCVTPH2PS(Mem{Base: t.scales, Disp: 32 + v*16}, d)
			VMULPS(d, least[v], least[v])
		}
		t.finish(sum, least)
	})
}

// pairs widens the sixteen byte scales at disp to int16, each twice, so that
// one multiply-add of int16 pairs scales and sums.
func (t *tile) pairs(disp int, widen func(...Op)) []reg.VecVirtual {
	w, sc := YMM(), []reg.VecVirtual{YMM(), YMM()}
	widen(Mem{Base: t.small, Disp: disp}, w)
	VPERMQ(Imm(0xd8), w, w)
	VPUNPCKLWD(w, w, sc[0])
	VPUNPCKHWD(w, w, sc[1])
	return sc
}

// finish adds the int32 sums of a group to the float32 ones: times the band's
// scales, less the minimums, times the activations' scale.
func (t *tile) finish(sum [][]reg.VecVirtual, least []reg.VecVirtual) {
	d := []reg.VecVirtual{YMM(), YMM()}
	for v := range vectors {
		VCVTPH2PS(Mem{Base: t.scales, Disp: v * 16}, d[v])
	}
	for i := range t.tokens {
		for v := range vectors {
			VCVTDQ2PS(sum[i][v], sum[i][v])
			VMULPS(d[v], sum[i][v], sum[i][v])
		}
		if least != nil {
			a := YMM()
			VBROADCASTSS(t.acts.at(i, recSum), a)
			for v := range vectors {
				VFNMADD231PS(a, least[v], sum[i][v])
			}
		}
		a := YMM()
		VBROADCASTSS(t.acts.at(i, recScale), a)
		for v := range vectors {
			if t.sums != nil {
				VFMADD231PS(a, sum[i][v], t.sums[i][v])
				continue
			}
			VFMADD213PS(t.y.at(i, v*32), a, sum[i][v])
			VMOVUPS(sum[i][v], t.y.at(i, v*32))
		}
	}
}

// plain loads step j's codes that are bytes.
func (t *tile) plain(j int) []reg.VecVirtual {
	code := []reg.VecVirtual{YMM(), YMM()}
	for v := range vectors {
		VMOVDQU(t.code(j*planeBytes+v*32), code[v])
	}
	return code
}

func (t *tile) narrowQ6() {
	low, high := YMM(), YMM()
	if !t.bytes {
		sixBitMasks(low, high)
	}
	spill := AllocLocal(t.tokens * bandRows * 4) // the first half's sums, where registers run out
	t.loop(func() {
		var first [][]reg.VecVirtual
		for h := range 2 {
			Commentf("columns %d to %d, sums from -32 times those of the activations", 16*h, 16*h+15)
			sum := grid(t.tokens)
			t.each(func(i, v int) { VPBROADCASTD(t.acts.at(i, recStart6+4*h), sum[i][v]) })
			for p := range 4 {
				if t.bytes {
					t.step(sum, t.plain(4*h+p), 16*h+4*p, false)
					continue
				}
				code := []reg.VecVirtual{YMM(), YMM()}
				for v := range vectors {
					sixBits(t.codes, h, p, v, low, high, code[v])
				}
				t.step(sum, code, 16*h+4*p, false)
			}
			sc := t.pairs(32+16*h, VPMOVSXBW)
			t.each(func(i, v int) { VPMADDWD(sc[v], sum[i][v], sum[i][v]) })
			place := func(i, v int) Mem { return spill.Offset((i*vectors + v) * 32) }
			switch {
			case h == 0 && t.tokens > 1:
				t.each(func(i, v int) { VMOVDQU(sum[i][v], place(i, v)) })
			case h == 0:
				first = sum
			case t.tokens > 1:
				t.each(func(i, v int) { VPADDD(place(i, v), sum[i][v], sum[i][v]) })
				t.finish(sum, nil)
			default:
				t.each(func(i, v int) { VPADDD(first[i][v], sum[i][v], sum[i][v]) })
				t.finish(sum, nil)
			}
		}
	})
}

// narrowQ8 multiplies |w| with activations of w's sign, because the byte
// multiply-add wants one unsigned side. A pair's sum is at most 2·128·127.
func (t *tile) narrowQ8() {
	ones := YMM()
	fillLanes(0x00010001, ones)
	t.loop(func() {
		sum := grid(t.tokens)
		for j := range 8 {
			w, size := make([]reg.VecVirtual, vectors), make([]reg.VecVirtual, vectors)
			for v := range vectors {
				w[v], size[v] = YMM(), YMM()
				VMOVDQU(t.code(j*planeBytes+v*32), w[v])
				VPABSB(w[v], size[v])
			}
			for i := range t.tokens {
				a := YMM()
				VPBROADCASTD(t.acts.at(i, 4*j), a)
				for v := range vectors {
					m := YMM()
					VPSIGNB(w[v], a, m)
					VPMADDUBSW(m, size[v], m)
					if j == 0 {
						VPMADDWD(ones, m, sum[i][v])
						continue
					}
					VPMADDWD(ones, m, m)
					VPADDD(m, sum[i][v], sum[i][v])
				}
			}
		}
		t.finish(sum, nil)
	})
}
