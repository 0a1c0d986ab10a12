package grouped

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
	"github.com/lutra-lm/lutra/kernels/_gen/ternary"
)

// AVX-VNNI tiles. A band is two vectors of 8 rows; VPDPBUSD adds products up in
// int32, so no sum needs widening. What follows a group costs three or four
// operations a vector and token on the units of VPDPBUSD, of which a group has
// eight. A 32-bit multiply is two operations, and is avoided. Q6's scales are
// multiplied in as int16, Q4M's as float32, where they are exact: sc·Σ stays below
// 2^24 in magnitude and d·sc has 19 bits, so d·(sc·Σ) may be (d·sc)·Σ, rounded once.
//
// Some tokens take both vectors together and share the broadcasts; more take one
// after the other, which shares what unfolds codes among more tokens. Cycles of a
// group (llvm-mca 19, alderlake), and of the AVX2 tiles and panels:
//
//	tokens   1     2     3     4     5     6     7     8     AVX2, 1     4     panel, 4
//	Q4       16.8  27.2  38.3  49.2  60.3  72.3  82.3  93.3        22.4  67.2  58.2
//	Q4M      22.7  34.2  47.2  58.2  70.3  82.3  94.3  106         26.3  73.2  61.2
//	Q6       32.8  41.5  50.3  59.3  73.3  83.4  94.4  106         39.5  83.3  53.2
//	Q8       15.1  24.2  35.8  47.2  58.7  70.2                    36.2  126

// dotWidths are the most tokens that take both vectors, as registers allow, and the most of a tile. More numbers of
// tokens have a tile where it is faster than two others (docs/data/kernels-avxvnni-f.csv).
var dotWidths = map[string]struct {
	both, all int
	more      []int
}{
	"Q4": {4, 8, []int{5}}, "Q4M": {4, 8, []int{5}}, "Q41": {4, 8, []int{5}}, "Q6": {4, 8, []int{5, 7}}, "Q8": {6, 6, []int{5}},
	"FP4": {4, 8, nil}, "NL3K": {4, 8, []int{5}}, "NL4S": {4, 8, nil},
}

// dotTokens returns the numbers of tokens that tiles have.
func (p packing) dotTokens() []int {
	w := dotWidths[p.name]
	return emit.Widths(1, w.all, w.more...)
}

func Dot() {
	for f := range dotPairs {
		dotPairs[f] = emit.Table(fmt.Sprintf("pair%d", f), emit.Repeat16(emit.Fill(16, func(i int) byte { return byte(i >> (2 * f) & 3 << 4) })))
	}
	for _, p := range packings {
		dotGroup(p, streamBands, 1)
		for _, t := range p.dotTokens() {
			dotGroup(p, 1, t)
		}
	}
}

// dotSums are a sum for each vector of a set and token.
type dotSums [][]reg.VecVirtual

// dotGroup generates a tile.
func dotGroup(p packing, bands, tokens int) {
	t := begin(p, emit.VexSuffix, bands, tokens)
	t.fetchStride()
	sets := [][]int{{0, 1}}
	if tokens > dotWidths[p.name].both {
		sets = [][]int{{0}, {1}}
	}
	if p.super() {
		t.dotQ6(sets)
	} else {
		group := map[string]func() func(vs []int){"Q4": t.dotQ4, "Q4M": t.dotQ4, "Q41": t.dotQ4, "Q8": t.dotQ8, "FP4": t.dotQ4}[p.name]()
		t.heldSums(nil, func() {
			for _, vs := range sets {
				group(vs)
			}
		})
	}
	emit.Done()
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
				emit.ZeroY(s)
			case k == 0:
				VPBROADCASTD(t.acts.At(i, disp), s)
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

// dotWord adds the products of four columns, bytes at disp of the records.
func (t *tile) dotWord(sum dotSums, codes []reg.VecVirtual, disp int) {
	for i := range t.tokens {
		a := YMM()
		VPBROADCASTD(t.acts.At(i, disp), a)
		for k, c := range codes {
			VPDPBUSD(a, c, sum[k][i])
		}
	}
}

func (t *tile) dotQ4() func(vs []int) {
	low := YMM()
	emit.FillLanes(0x0f0f0f0f, low)
	level := t.levels(false)
	return func(vs []int) {
		start, shift := acts.RecSum8, uint64(0)
		switch t.name {
		case "Q4M", "Q41":
			start = -1
		case "FP4":
			shift = 1
		}
		sum := t.dotStart(vs, start, shift)
		for p := range 4 {
			raw, code := make([]reg.VecVirtual, len(vs)), make([]reg.VecVirtual, len(vs))
			for k, v := range vs {
				raw[k], code[k] = ternary.LoadY(t.code(p*planeBytes+v*32)), YMM()
				VPAND(low, raw[k], code[k])
				level(code[k])
			}
			t.dotWord(sum, code, 4*p)
			for _, r := range raw {
				VPSRLW(Imm(4), r, r)
				VPAND(low, r, r)
				level(r)
			}
			t.dotWord(sum, raw, 16+4*p)
		}
		for k, v := range vs {
			d := t.dotScale(v)
			if !t.least() {
				t.dotFinish(v, sum[k], d, nil)
				continue
			}
			if t.name == "Q41" {
				least := YMM()
				VCVTPH2PS(t.scaleAt(32+v*16), least)
				t.dotFinish(v, sum[k], d, least)
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
	codes := t.dotCodes()
	super := t.superSums()
	var first func(i, k int) Op
	if t.tokens > 1 { // the first half's sums: registers run out
		m := AllocLocal(t.tokens * len(sets[0]) * 32)
		first = func(i, k int) Op { return m.Offset((i*len(sets[0]) + k) * 32) }
	}
	t.loop(func() { super[t.band].begin() }, func() {
		for _, vs := range sets {
			sum := t.dotHalves(vs, codes, first)
			for i := range t.tokens {
				a := YMM()
				VBROADCASTSS(t.acts.At(i, acts.RecScale), a)
				for k, v := range vs {
					super[t.band].add(i, v, a, sum[k][i])
				}
			}
		}
	}, func() { super[t.band].end(t.superScales()) })
}

// dotCodes loads the codes of superblocks.
func (t *tile) dotCodes() superCodes {
	if t.raised > 0 {
		return t.levelCodes(32)
	}
	six := newDotSixBits()
	return superCodes{inOrder, func(h, p, v int) reg.VecVirtual { return six.code(t, h, p, v) }}
}

// dotSixBits joins low nibbles and high bits. Half of the pairs of high bits
// come to their place by a table of nibbles, since shifts wait for the units of
// VPDPBUSD.
type dotSixBits struct {
	low, high reg.VecVirtual
	pair      [2]reg.VecVirtual // bits 0, 1 and bits 2, 3 of a nibble, as bits 4, 5
}

// dotPairs are the tables of pair.
var dotPairs [2]Mem

func newDotSixBits() *dotSixBits {
	s := &dotSixBits{low: YMM(), high: YMM()}
	emit.FillLanes(0x0f0f0f0f, s.low)
	emit.FillLanes(0x30303030, s.high)
	for f := range s.pair {
		s.pair[f] = ternary.LoadY(dotPairs[f])
	}
	return s
}

// code gives the 6-bit codes of word 4h+p, vector v.
func (s *dotSixBits) code(t *tile, h, p, v int) reg.VecVirtual {
	code, pair := YMM(), YMM()
	nibbles, pairs := t.code(p*planeBytes+v*32), t.code(nibbleBytes+h*planeBytes+v*32)
	if h == 0 {
		VPAND(nibbles, s.low, code)
	} else {
		VMOVDQU(nibbles, code)
		VPSRLW(Imm(4), code, code)
		VPAND(s.low, code, code)
	}
	switch p {
	case 0, 1:
		VPAND(pairs, s.low, pair)
		VPSHUFB(pair, s.pair[p], pair)
	case 2:
		VPAND(pairs, s.high, pair)
	case 3:
		VMOVDQU(pairs, pair)
		VPSRLW(Imm(2), pair, pair)
		VPAND(s.high, pair, pair)
	}
	VPOR(pair, code, code)
	return code
}

// dotHalves gives the float32 sums of a group of a superblock with the scales of
// its halves. A half's sum fits int16 (mostHalf in kernels/acts/groups.go of the
// kernels), so one VPMADDWD scales and adds both; meanwhile those of the first
// half are in memory that first names, nil: in registers.
func (t *tile) dotHalves(vs []int, codes superCodes, first func(i, k int) Op) dotSums {
	half := func(h int) dotSums {
		Commentf("columns %d to %d, sums from -%d times those of the activations", 16*h, 16*h+15, max(32, t.raised))
		sum := t.dotStart(vs, acts.RecHalf32+4*h, t.doubled())
		for _, p := range codes.order {
			words := make([]reg.VecVirtual, len(vs))
			for k, v := range vs {
				words[k] = codes.word(h, p, v)
			}
			t.dotWord(sum, words, 16*h+4*p)
		}
		return sum
	}
	even := half(0)
	if first == nil {
		first = func(i, k int) Op { return even[k][i] }
	} else {
		for k := range vs {
			for i, s := range even[k] {
				VMOVDQU(s, first(i, k))
			}
		}
	}
	odd := half(1)
	for k, v := range vs {
		x, y, sc := XMM(), XMM(), YMM()
		VMOVQ(t.smallAt(t.halfScales(0)+v*8), x)
		VMOVQ(t.smallAt(t.halfScales(1)+v*8), y)
		VPUNPCKLBW(y, x, x)
		VPMOVSXBW(x, sc)
		for i, s := range odd[k] {
			VPSLLDQ(Imm(2), s, s)
			VPBLENDW(Imm(0x55), first(i, k), s, s)
			VPMADDWD(sc, s, s)
			VCVTDQ2PS(s, s)
		}
	}
	return odd
}

func (t *tile) dotQ8() func(vs []int) {
	offset := YMM()
	emit.FillLanes(0x80808080, offset)
	return func(vs []int) {
		Comment("codes become unsigned by adding 128; sums start at -128 times those of the activations")
		sum := t.dotStart(vs, acts.RecSum8, 4)
		for j := range 8 {
			codes := make([]reg.VecVirtual, len(vs))
			for k, v := range vs {
				codes[k] = YMM()
				VPXOR(t.code(j*planeBytes+v*32), offset, codes[k])
			}
			t.dotWord(sum, codes, 4*j)
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
			VBROADCASTSS(t.acts.At(i, acts.RecSum), a)
			VFNMADD231PS(a, least, s)
		}
		a := YMM()
		VBROADCASTSS(t.acts.At(i, acts.RecScale), a)
		if t.sums != nil {
			VFMADD231PS(a, s, t.sums[i][v])
			continue
		}
		VFMADD213PS(t.y.At(i, v*32), a, s)
		VMOVUPS(s, t.y.At(i, v*32))
	}
}
