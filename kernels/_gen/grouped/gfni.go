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

// Tiles for processors with two ports of 512 bits, which VPDPBUSD shares with what
// unpacks codes and scales sums: one band and as many tokens as registers hold sums for,
// or two bands and a few tokens. VGF2P8AFFINEQB moves a field of bits in one operation,
// and the codes of a word are unpacked amid the products of the word before, because a
// port takes its oldest operation first. Requests for what comes next stand amid the products
// too, a few lines a word: a core has 48 lines under way, and memory waits when they are fewer.
//
// Operations of the two ports for a group of 32 columns, a band and T tokens, without
// 8·T VPDPBUSD, and the share of these for the most tokens there are:
//
//	        unpacking   sums, each token   each unit    T    share
//	Q1, Q2  8           2                  T + 3        12   0.73
//	Q4, Q8  8           2                  3            12   0.72
//	FP4     12          2                  3            8    0.66
//	Q4M     8           3                  7            12   0.65
//	Q41     8           3                  4            12   0.66
//	Q6      20          4                  T + 7        8    0.53
//
// The sums of Q4, Q8, FP4 and Q4M become float32 without a conversion: they start from the
// bits of 1.5·2²³, and as a float32 end as 1.5·2²³ + Σ. For a finite d
// d·(1.5·2²³ + Σ) - d·1.5·2²³, rounded once, is d·Σ rounded once.
const magicBits = 0x4b400000

// gfniWidest returns the number of tokens of the widest tile.
func (p packing) gfniWidest() int {
	if p.name == "Q6" || p.name == "FP4" {
		return 8
	}
	return 12
}

// gfniPair returns the number of tokens of the widest tile of two bands. Those of Q8 keep sums in
// memory: half of the broadcasts are worth it where little unpacking stands beside them.
func (p packing) gfniPair() int {
	switch p.name {
	case "Q6":
		return 4
	case "Q8":
		return 8
	}
	return gfniInRegisters
}

// gfniInRegisters is the most tokens of two bands whose sums stay in registers.
const gfniInRegisters = 6

// GFNI emits them.
func GFNI() {
	emitEighth("gfniEighth")
	const isa = "GFNIAVX512"
	for _, p := range packings {
		wide(p, isa)
	}
	lowWide(lowPackings[1], isa)
	for _, p := range append(packings[:len(packings):len(packings)], lowPackings...) {
		if p.low == 0 { // of the others panels gain 4 % at most
			gfniWriter(p)
		}
		for _, t := range emit.Widths(2, p.gfniWidest(), 5) {
			gfniTile(p, t)
		}
	}
	for _, f := range gfniPanels {
		for t := f.tokens[0]; t <= f.tokens[1]; t++ {
			gfniPanelTile(f, t)
		}
	}
}

// constants are tables of eight bytes, by value.
var constants = map[uint64]Mem{}

// constant returns eight bytes in memory, to be broadcast.
func constant(v uint64) Mem {
	m, ok := constants[v]
	if !ok {
		m = emit.Table(fmt.Sprintf("gfniWord%x", v), emit.Fill(8, func(i int) byte { return byte(v >> (8 * i)) }))
		constants[v] = m
	}
	return m
}

// everyByte returns a byte eight times, everyDword a dword twice.
func everyByte(b uint64) Mem  { return constant(b * 0x0101010101010101) }
func everyDword(v uint64) Mem { return constant(v<<32 | v) }

// moveBits moves n bits of each byte of v from bit from on to bit to, and clears the others.
func moveBits(v reg.VecVirtual, n, from, to int) {
	var matrix uint64 // byte 7-i selects what becomes bit i
	for i := range n {
		matrix |= 1 << (from + i) << (8 * (7 - (to + i)))
	}
	VGF2P8AFFINEQB_BCST(Imm(0), constant(matrix), v, v)
}

// gfni is a tile of n bands.
type gfni struct {
	*tile
	n       int
	ready   [2][]reg.VecVirtual // codes of words in turns, of each band
	sums    [][]reg.VecVirtual  // float32, of a unit or of y: [band][token]
	d       []reg.VecVirtual    // of a unit, by band
	table   reg.VecVirtual      // of FP4: levels and 128
	spilled reg.GPVirtual       // [band][token] sums in memory, where registers have no room for them; nil: sums
	super   reg.GPVirtual       // of Q4M: d and dmin of a superblock as float32, [band][2][16]
}

// superScale gives what converts the scales of a superblock of Q4M once for all its groups.
func (t *gfni) superScale() (first func()) {
	if t.name != "Q4M" {
		return func() {}
	}
	t.super = emit.AlignedLocal(t.n * 2 * planeBytes)
	return func() {
		t.each(func(b int) {
			for i := range 2 {
				d := ZMM()
				VCVTPH2PS(t.scaleAt(32*i), d)
				VMOVUPS(d, t.superAt(i))
			}
		})
	}
}

// superAt returns the place of d, or dmin, of the current band.
func (t *gfni) superAt(i int) Mem { return Mem{Base: t.super, Disp: (2*t.band + i) * planeBytes} }

// levelTable readies what FP4's codes are looked up in.
func (t *gfni) levelTable() {
	if t.name != "FP4" {
		return
	}
	if fp4Bytes == nil {
		fp4Bytes = emit.Table("gfniLevelsFP4", emit.Fill(64, func(i int) byte { return byte(e2m1[i%16] + 128) }))
	}
	t.table = ZMM()
	VMOVDQU64(fp4Bytes, t.table)
}

// fp4Bytes is the table, once it is wanted.
var fp4Bytes Op

func gfniTile(p packing, tokens int) {
	n := 1
	if tokens <= p.gfniPair() {
		n = 2
	}
	name := fmt.Sprintf("grouped%sGFNIAVX512x%d", p.name, tokens)
	emit.Text(name, p.signature(pairSignature))
	p.in(pairTables).Add(tokens, p.keys("GFNIAVX512")...)
	bands := "a band"
	if n == 2 {
		bands = "two bands"
	}
	emit.Contract(fmt.Sprintf("%s adds to y[%d][%d] (ld values a token) the products of %s of %s that are", name, tokens, n*dense.BandRows, bands, p.name),
		"stride bytes apart with rows of activation records that are lda bytes apart. It prefetches as many bytes at",
		"next, which need not be memory at all.")
	t := gfni{tile: &tile{packing: p, bands: 1, fetched: n, tokens: tokens, spread: true}, n: n}
	t.codes = Load(Param("codes"), GP64()).(reg.GPVirtual)
	t.scales = Load(Param("scales"), GP64()).(reg.GPVirtual)
	t.next = Load(Param("next"), GP64()).(reg.GPVirtual)
	if n > 1 {
		t.stride = Load(Param("stride"), GP64()).(reg.GPVirtual)
	}
	t.acts = emit.NewRows("acts", "lda", 0, tokens)
	if n == 2 && tokens > gfniInRegisters {
		t.spilled = emit.AlignedLocal(n * tokens * planeBytes)
	} else {
		for range n {
			t.sums = append(t.sums, row(tokens))
		}
	}
	for i := range t.ready {
		t.ready[i] = row(n)
	}
	t.levelTable()
	t.unpack(0)
	if p.low > 0 || p.name == "Q6" {
		group := t.groupLow
		if p.name == "Q6" {
			group = t.groupQ6
		}
		t.loop(t.begin, group, t.end)
	} else {
		t.eachY(func(i, b int, y Mem) { t.move(y, t.sum(i, b)) })
		t.loop(t.superScale(), t.groupScaled, nil)
		t.eachY(func(i, b int, y Mem) { t.move(t.sum(i, b), y) })
	}
	emit.Done()
}

// each runs f for each band.
func (t *gfni) each(f func(b int)) {
	for t.band = range t.n {
		f(t.band)
	}
	t.band = 0
}

// eachY runs f with the addresses of y, in order of tokens.
func (t *gfni) eachY(f func(i, b int, y Mem)) {
	y, ld := Load(Param("y"), GP64()), Load(Param("ld"), GP64())
	SHLQ(Imm(2), ld)
	for i := range t.tokens {
		for b := range t.n {
			f(i, b, Mem{Base: y, Disp: planeBytes * b})
		}
		if i+1 < t.tokens {
			ADDQ(ld, y)
		}
	}
}

// begin clears the sums of a unit and readies its scales.
func (t *gfni) begin() {
	t.d = nil
	t.each(func(b int) {
		d := t.wideScales()[0]
		if t.low > 0 {
			VMULPS(eighth, d, d)
		}
		t.d = append(t.d, d)
		for _, v := range t.sums[b] {
			emit.Zero(v)
		}
	})
}

// end adds the sums of a unit to y.
func (t *gfni) end() {
	t.eachY(func(i, b int, y Mem) {
		VFMADD213PS(y, t.d[b], t.sums[b][i])
		VMOVUPS(t.sums[b][i], y)
	})
}

// gfniChains is the number of sums that VPDPBUSD's latency of five cycles asks for at two
// a cycle: with fewer of them odd words have sums of their own.
const gfniChains = 10

// dots adds the products of words [from, to) to sums that begin at start, by token.
func (t *gfni) dots(from, to int, start func(i int) Mem) [][]reg.VecVirtual {
	sum := make([][]reg.VecVirtual, t.n)
	odd := sum
	if t.n*t.tokens < gfniChains && to-from == 8 {
		odd = make([][]reg.VecVirtual, t.n)
		for b := range odd {
			odd[b] = row(t.tokens)
			for _, v := range odd[b] {
				emit.Zero(v)
			}
		}
	}
	for b := range sum {
		sum[b] = row(t.tokens)
		for i, v := range sum[b] {
			if b == 0 {
				VPBROADCASTD(start(i), v)
			} else {
				VMOVDQA64(sum[0][i], v)
			}
		}
	}
	for j := from; j < to; j++ {
		sum := [][][]reg.VecVirtual{sum, odd}[j%2]
		for i := range t.tokens {
			if t.n == 1 {
				VPDPBUSD_BCST(t.acts.At(i, 4*j), t.ready[j%2][0], sum[0][i])
			} else {
				a := ZMM()
				VPBROADCASTD(t.acts.At(i, 4*j), a)
				for b := range sum {
					VPDPBUSD(a, t.ready[j%2][b], sum[b][i])
				}
			}
			if i == t.tokens/2 {
				t.unpack(j + 1)
			}
		}
		group, lines := t.groupLines()
		t.fetchLines(j*lines/8, (j+1)*lines/8)
		if j == 7 {
			t.fetchNext(group)
		}
	}
	if &odd[0] != &sum[0] {
		for b := range sum {
			for i, v := range sum[b] {
				VPADDD(odd[b][i], v, v)
			}
		}
	}
	return sum
}

// record gives what of the records sums begin at.
func (t *gfni) record(disp int) func(i int) Mem {
	return func(i int) Mem { return t.acts.At(i, disp) }
}

// unpack readies word j's codes, as VPDPBUSD takes them. Word 8 is the first one of the
// next group; after the last group there are scales.
func (t *gfni) unpack(j int) {
	t.each(func(b int) { t.unpackBand(j%8, j/8*t.codeBytes, t.ready[j%2][b]) })
}

func (t *gfni) unpackBand(j, at int, v reg.VecVirtual) {
	switch {
	case t.low > 0:
		plane, lowest := t.field(j)
		VMOVDQU64(t.code(at+plane*planeBytes), v)
		moveBits(v, t.low, lowest, t.lowAt())
	case t.name == "Q8":
		VMOVDQU64(t.code(at+j*planeBytes), v)
		VPXORD_BCST(everyByte(0x80), v, v)
	case t.name == "Q6":
		h, p := j/4, j%4
		nibble := ZMM()
		VMOVDQU64(t.code(at+nibbleBytes+h*planeBytes), v)
		moveBits(v, 2, 2*p, 4)
		VMOVDQU64(t.code(at+p*planeBytes), nibble)
		if h == 0 {
			VPTERNLOGD_BCST(Imm(0xf8), everyByte(0x0f), nibble, v) // v | nibble & 15
			return
		}
		moveBits(nibble, 4, 4, 0)
		VPORD(nibble, v, v)
	case t.name == "FP4":
		VMOVDQU64(t.code(at+j%4*planeBytes), v)
		if j >= 4 {
			VPSRLW(Imm(4), v, v)
		}
		VPERMB(t.table, v, v) // of an index' six bits two count for nothing
	case j < 4:
		VMOVDQU64(t.code(at+j*planeBytes), v)
		VPANDD_BCST(everyByte(0x0f), v, v)
	default:
		VMOVDQU64(t.code(at+(j-4)*planeBytes), v)
		moveBits(v, 4, 4, 0)
	}
}

func (t *gfni) groupLow() { t.convert(t.dots(0, 8, t.record(acts.RecSum8))) }

// convert adds the int32 sums of a group, scaled by its activations, to those of the unit.
func (t *gfni) convert(sum [][]reg.VecVirtual) {
	for i := range t.tokens {
		for b := range sum {
			VCVTDQ2PS(sum[b][i], sum[b][i])
			VFMADD231PS_BCST(t.acts.At(i, acts.RecScale), sum[b][i], t.sums[b][i])
		}
	}
}

// groupScaled scales a group of Q4, Q8 or Q4M. The scale of a group of Q4M times d is exact.
func (t *gfni) groupScaled() {
	unsigned := func(int) Mem { return everyDword(magicBits) }
	start := map[string]func(int) Mem{
		"Q4":  t.record(acts.RecMagic8),
		"Q8":  t.record(acts.RecMagic128),
		"FP4": t.record(acts.RecMagic128),
		"Q4M": unsigned,
		"Q41": unsigned,
	}[t.name]
	sum := t.dots(0, 8, start)
	t.each(func(b int) {
		d, off := t.magicScale()
		for _, v := range sum[b] {
			VFMADD213PS(off, d, v)
		}
		if t.packing.least() {
			least := t.minimum()
			for i, v := range sum[b] {
				VFNMADD231PS_BCST(t.acts.At(i, acts.RecSum), least, v)
			}
		}
		for i, v := range sum[b] {
			if t.spilled == nil {
				VFMADD231PS_BCST(t.acts.At(i, acts.RecScale), v, t.sums[b][i])
				continue
			}
			a := ZMM()
			VBROADCASTSS(t.acts.At(i, acts.RecScale), a)
			VFMADD213PS(t.sum(i, b), a, v)
			VMOVUPS(v, t.sum(i, b))
		}
	})
}

// sum returns the place of the sums of token i and band b.
func (t *gfni) sum(i, b int) Op {
	if t.spilled == nil {
		return t.sums[b][i]
	}
	return Mem{Base: t.spilled, Disp: (b*t.tokens + i) * planeBytes}
}

// move copies a register's worth from one place to another.
func (t *gfni) move(from, to Op) {
	if t.spilled != nil {
		v := ZMM()
		VMOVUPS(from, v)
		from = v
	}
	VMOVUPS(from, to)
}

// magicScale gives the scales of a group of the current band, and -1.5·2²³ times them.
func (t *gfni) magicScale() (d, off reg.VecVirtual) {
	d, off = ZMM(), ZMM()
	if t.name == "Q4M" {
		VPMOVZXBD(t.smallAt(64), d)
		VCVTDQ2PS(d, d)
		VMULPS(t.superAt(0), d, d)
	} else {
		VCVTPH2PS(t.scaleAt(0), d)
	}
	VMULPS_BCST(everyDword(magicBits|1<<31), d, off) // exact
	return d, off
}

// minimum gives the minimums of a group.
func (t *gfni) minimum() reg.VecVirtual {
	least := ZMM()
	if t.name == "Q41" {
		VCVTPH2PS(t.scaleAt(32), least)
		return least
	}
	VPMOVZXBD(t.smallAt(80), least)
	VCVTDQ2PS(least, least)
	VMULPS(t.superAt(1), least, least)
	return least
}

// halfScale gives the scales of half h of a group of Q6 as int16: the high half of a
// negative sum counts for nothing.
func (t *gfni) halfScale(h int) reg.VecVirtual {
	sc := ZMM()
	VPMOVSXBD(t.smallAt(32+16*h), sc)
	VPANDD_BCST(everyDword(0xffff), sc, sc)
	return sc
}

// groupQ6 multiplies the sums of each half, which fit int16 (acts.Limited), by scales as
// int16.
func (t *gfni) groupQ6() {
	scale := func(h int) []reg.VecVirtual {
		var sc []reg.VecVirtual
		t.each(func(int) { sc = append(sc, t.halfScale(h)) })
		return sc
	}
	first := t.dots(0, 4, t.record(acts.RecHalf32))
	sc := scale(0)
	for b := range first {
		for _, v := range first[b] {
			VPMADDWD(sc[b], v, v)
		}
	}
	second := t.dots(4, 8, t.record(acts.RecHalf32+4))
	sc = scale(1)
	for b := range first {
		for i, v := range first[b] {
			VPDPWSSD(sc[b], second[b][i], v)
		}
	}
	t.convert(first)
}
