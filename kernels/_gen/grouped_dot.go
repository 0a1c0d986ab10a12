package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// AVX-VNNI tiles. A band is two vectors of 8 rows; VPDPBUSD adds products up in
// int32, so no sum needs widening. What follows a group costs three to six
// operations a vector and token on the units of VPDPBUSD, of which a group has
// eight; hence scales of groups are multiplied in as float32, where they are
// exact: a sum of sc·Σ stays below 2^24 in magnitude, and d·sc has 19 bits. So
// d·(sc·Σ) may be (d·sc)·Σ, and every bracket of grouped_mul.go is still rounded
// once.
//
// Some tokens take both vectors together and share the broadcasts; more take one
// after the other, which shares what unfolds codes among more tokens. Cycles of a
// group (llvm-mca 19, for Q6 14, alderlake), and of the AVX2 tiles and panels:
//
//	tokens   1     2     3     4     5     6     7     8     AVX2, 1     4     panel, 4
//	Q4       16.8  27.2  38.3  49.2  60.3  72.3  82.3  93.3        22.4  67.2  58.2
//	Q4M      22.7  34.2  47.2  58.2  70.3  82.3  94.3  106         26.3  73.2  61.2
//	Q6 (14)  36.4  47.1  58.5  72.9  93.6  110   125   138         41.6  91.5  56.5
//	Q8       15.1  24.2  35.8  47.2  58.7  70.2                    36.2  126   93.5

const dotHeld = 2 // tokens up to which the float32 sums stay in registers

// dotWidths are the most tokens that take both vectors, as registers allow, and
// the most of a tile.
var dotWidths = map[string]struct{ both, all int }{"Q4": {4, 8}, "Q4M": {4, 8}, "Q6": {4, 8}, "Q8": {6, 6}}

func groupedDot() {
	for _, p := range packings {
		dotGroup(p, streamBands, 1)
		for t := 1; t <= dotWidths[p.name].all; t++ {
			dotGroup(p, 1, t)
		}
	}
}

// dotSums are a sum for each vector of a set and token.
type dotSums [][]reg.VecVirtual

// dotGroup generates a tile.
func dotGroup(p packing, bands, tokens int) {
	t := begin(p, vexSuffix, bands, tokens)
	if t.next == nil {
		Comment("What lies stride bytes further on is prefetched")
		t.next = Load(Param("stride"), GP64()).(reg.GPVirtual)
		ADDQ(t.codes, t.next)
	}
	sets := [][]int{{0, 1}}
	if tokens > dotWidths[p.name].both {
		sets = [][]int{{0}, {1}}
	}
	if p.name == "Q6" {
		t.dotQ6(sets)
	} else {
		t.dotHeldSums(sets, map[string]func() func(vs []int){"Q4": t.dotQ4, "Q4M": t.dotQ4, "Q8": t.dotQ8}[p.name]())
	}
	done()
}

// dotHeldSums runs group over all groups and sets of vectors, with the sums of
// a few tokens in registers.
func (t *tile) dotHeldSums(sets [][]int, group func(vs []int)) {
	var held [][][]reg.VecVirtual
	if t.tokens <= dotHeld {
		for b := range t.bands {
			held = append(held, grid(t.tokens))
			t.each(func(i, v int) { VMOVUPS(t.y.at(i, b*64+v*32), held[b][i][v]) })
		}
	}
	t.loop(nil, func() {
		if held != nil {
			t.sums = held[t.band]
		}
		for _, vs := range sets {
			group(vs)
		}
	}, nil)
	for b := range held {
		t.each(func(i, v int) { VMOVUPS(held[b][i][v], t.y.at(i, b*64+v*32)) })
	}
}

// dotStart sets the sums of a group to the dword at disp of the records, times
// 2^shift; disp < 0: to nothing.
func (t *tile) dotStart(vs []int, disp int, shift uint64) dotSums {
	sum := make(dotSums, len(vs))
	for i := range t.tokens {
		for k := range vs {
			s := YMM()
			sum[k] = append(sum[k], s)
			switch {
			case disp < 0:
				zeroY(s)
			case k == 0:
				VPBROADCASTD(t.acts.at(i, disp), s)
				if shift > 0 {
					VPSLLD(Imm(shift), s, s)
				}
			default:
				VMOVDQA(sum[0][i], s)
			}
		}
	}
	return sum
}

// dotStep adds the products of four columns, bytes at disp of the records.
func (t *tile) dotStep(sum dotSums, codes []reg.VecVirtual, disp int) {
	for i := range t.tokens {
		a := YMM()
		VPBROADCASTD(t.acts.at(i, disp), a)
		for k, c := range codes {
			VPDPBUSD(a, c, sum[k][i])
		}
	}
}

func (t *tile) dotQ4() func(vs []int) {
	low := YMM()
	fillLanes(0x0f0f0f0f, low)
	return func(vs []int) {
		start := -1
		if t.name == "Q4" {
			start = recSum8
		}
		sum := t.dotStart(vs, start, 0)
		for p := range 4 {
			raw, code := make([]reg.VecVirtual, len(vs)), make([]reg.VecVirtual, len(vs))
			for k, v := range vs {
				raw[k], code[k] = loadY(t.code(p*planeBytes+v*32)), YMM()
				VPAND(low, raw[k], code[k])
			}
			t.dotStep(sum, code, 4*p)
			for _, r := range raw {
				VPSRLW(Imm(4), r, r)
				VPAND(low, r, r)
			}
			t.dotStep(sum, raw, 16+4*p)
		}
		for k, v := range vs {
			d := t.dotScale(v)
			if t.name == "Q4" {
				t.dotFinish(v, sum[k], d, nil)
				continue
			}
			sc, least, dmin := YMM(), YMM(), YMM()
			VPMOVZXBD(t.smallAt(64+v*8), sc)
			VCVTDQ2PS(sc, sc)
			VMULPS(sc, d, d)
			VPMOVZXBD(t.smallAt(80+v*8), least)
			VCVTDQ2PS(least, least)
			VCVTPH2PS(t.scaleAt(32+v*16), dmin)
			VMULPS(dmin, least, least)
			t.dotFinish(v, sum[k], d, least)
		}
	}
}

// dotScale gives d of a vector.
func (t *tile) dotScale(v int) reg.VecVirtual {
	d := YMM()
	VCVTPH2PS(t.scaleAt(v*16), d)
	return d
}

func (t *tile) dotQ6(sets [][]int) {
	low, high := YMM(), YMM()
	fillLanes(0x0f0f0f0f, low)
	fillLanes(0x30303030, high)
	super := make([]*superSums, t.bands)
	for b := range super {
		if t.tokens <= dotHeld {
			super[b] = t.superRegisters(b, grid(t.tokens))
		} else {
			super[b] = t.superMemory(b)
		}
	}
	first := AllocLocal(t.tokens * len(sets[0]) * 32) // the first half's sums: registers run out
	place := func(i, k int) Mem { return first.Offset((i*len(sets[0]) + k) * 32) }
	t.loop(func() { super[t.band].begin() }, func() {
		for _, vs := range sets {
			sum := t.dotHalves(vs, low, high, place)
			for i := range t.tokens {
				a := YMM()
				VBROADCASTSS(t.acts.at(i, recScale), a)
				for k, v := range vs {
					super[t.band].add(i, v, a, sum[k][i])
				}
			}
		}
	}, func() { super[t.band].end([]reg.VecVirtual{t.dotScale(0), t.dotScale(1)}) })
}

// dotHalves gives the float32 sums of a group of 6-bit codes with the scales of
// its halves.
func (t *tile) dotHalves(vs []int, low, high reg.VecVirtual, place func(i, k int) Mem) (sum dotSums) {
	for h := range 2 {
		Commentf("columns %d to %d, sums from -32 times those of the activations", 16*h, 16*h+15)
		sum = t.dotStart(vs, recHalf32+4*h, 0)
		for p := range 4 {
			codes := make([]reg.VecVirtual, len(vs))
			for k, v := range vs {
				codes[k] = YMM()
				t.sixBits(h, p, v, low, high, codes[k])
			}
			t.dotStep(sum, codes, 16*h+4*p)
		}
		for k, v := range vs {
			sc := YMM()
			VPMOVSXBD(t.smallAt(32+16*h+v*8), sc)
			VCVTDQ2PS(sc, sc)
			for i, s := range sum[k] {
				VCVTDQ2PS(s, s)
				if h == 0 {
					VMULPS(sc, s, s)
					VMOVUPS(s, place(i, k))
					continue
				}
				VFMADD213PS(place(i, k), sc, s)
			}
		}
	}
	return sum
}

func (t *tile) dotQ8() func(vs []int) {
	offset := YMM()
	fillLanes(0x80808080, offset)
	return func(vs []int) {
		Comment("codes become unsigned by adding 128; sums start at -128 times those of the activations")
		sum := t.dotStart(vs, recSum8, 4)
		for j := range 8 {
			codes := make([]reg.VecVirtual, len(vs))
			for k, v := range vs {
				codes[k] = YMM()
				VPXOR(t.code(j*planeBytes+v*32), offset, codes[k])
			}
			t.dotStep(sum, codes, 4*j)
		}
		for k, v := range vs {
			t.dotFinish(v, sum[k], t.dotScale(v), nil)
		}
	}
}

// dotFinish adds the int32 sums of a group to the float32 ones of vector v:
// times the scales d, less the minimums, times the activations' scale.
func (t *tile) dotFinish(v int, sum []reg.VecVirtual, d, least reg.VecVirtual) {
	for i, s := range sum {
		VCVTDQ2PS(s, s)
		VMULPS(d, s, s)
		if least != nil {
			a := YMM()
			VBROADCASTSS(t.acts.at(i, recSum), a)
			VFNMADD231PS(a, least, s)
		}
		a := YMM()
		VBROADCASTSS(t.acts.at(i, recScale), a)
		if t.sums != nil {
			VFMADD231PS(a, s, t.sums[i][v])
			continue
		}
		VFMADD213PS(t.y.at(i, v*32), a, s)
		VMOVUPS(s, t.y.at(i, v*32))
	}
}
