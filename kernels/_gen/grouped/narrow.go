package grouped

import (
	"cmp"
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// tile is a kernel under construction: some bands, some tokens.
type tile struct {
	packing
	bands, tokens   int
	next            reg.GPVirtual // what to prefetch, as many bytes as the bands have; nil: nothing
	fetched         int           // bands that next is walked over for; 0: bands
	group           reg.GPVirtual // bytes of a group of these, where routines are told the units
	near            bool          // prefetch into L1, not L2
	spread          bool          // prefetches stand amid products
	record          int           // bytes of a group's activations; 0: those of an activation record
	band            int           // the one being emitted
	codes, scales   reg.GPVirtual // of the current group; of the current scale unit
	small           reg.GPVirtual // byte scales of the current group
	stride, stride3 reg.GPVirtual // of bands
	acts, y         emit.Rows
	sums            [][]reg.VecVirtual // float32 sums of the band [token][vector]; nil: they stay in y
	wide            []Mem              // d and dmin of each band's superblock as float32; nil: they are float16
}

// groupedSignature is the signature of every tile; groups ≥ 1, whole scale units.
const groupedSignature = "func(y *float32, ld int, codes *byte, scales *byte, stride int, acts *byte, lda int, groups int)"

// signature returns that of a routine of p.
func (p packing) signature(of string) string {
	switch {
	case p.unit == 0:
		return strings.TrimSuffix(of, ")") + ", unit int)"
	case p.raised > 0:
		return strings.TrimSuffix(of, ")") + ", levels *int8)"
	}
	return of
}

// groupsOfUnit returns how many groups a scale unit has: a number, or the routine's
// parameter.
func (p packing) groupsOfUnit() Op {
	if p.unit > 0 {
		return U32(uint32(p.unit))
	}
	unit, err := Param("unit").Resolve()
	if err != nil {
		panic(err)
	}
	return unit.Addr
}

func begin(p packing, isa string, bands, tokens int) *tile {
	if bands > 1 && tokens == 1 {
		return beginStream(p, isa, bands)
	}
	name := fmt.Sprintf("grouped%s%sx%dx%d", p.name, isa, bands, tokens)
	emit.Text(name, p.signature(groupedSignature))
	p.in(tileTables).Add(tokens, p.keys(isa)...)
	emit.Contract(fmt.Sprintf("%s adds to y[%d][%d] (ld values a token) the products of bands of %s that are", name, tokens, bands*dense.BandRows, p.name),
		"stride bytes apart with rows of activation records that are lda bytes apart.")
	t := &tile{packing: p, bands: bands, tokens: tokens}
	t.parameters()
	return t
}

// parameters loads what all tiles have.
func (t *tile) parameters() {
	t.codes = Load(Param("codes"), GP64()).(reg.GPVirtual)
	t.scales = Load(Param("scales"), GP64()).(reg.GPVirtual)
	if t.bands > 1 {
		t.stride, t.stride3 = Load(Param("stride"), GP64()).(reg.GPVirtual), GP64()
		LEAQ(Mem{Base: t.stride, Index: t.stride, Scale: 2}, t.stride3)
	}
	t.acts = emit.NewRows("acts", "lda", 0, t.tokens)
	t.y = emit.NewRows("y", "ld", 2, t.tokens)
}

// at returns the memory disp bytes from p in the current band.
func (t *tile) at(p reg.GPVirtual, disp int) Mem {
	switch t.band {
	case 0:
		return Mem{Base: p, Disp: disp}
	case 3:
		return Mem{Base: p, Index: t.stride3, Scale: 1, Disp: disp}
	}
	return Mem{Base: p, Index: t.stride, Scale: uint8(t.band), Disp: disp}
}

func (t *tile) code(disp int) Mem    { return t.at(t.codes, disp) }
func (t *tile) scaleAt(disp int) Mem { return t.at(t.scales, disp) }
func (t *tile) smallAt(disp int) Mem { return t.at(t.small, disp) }

// loop runs group over all groups and bands; of superblocks, first before
// their groups and last after them.
func (t *tile) loop(first, group, last func()) {
	groups := Load(Param("groups"), GP64()).(reg.GPVirtual)
	all := func() {
		t.eachBand(func() {
			if t.next != nil && !t.spread {
				t.fetch()
			}
			group()
		})
		ADDQ(U32(uint32(t.codeBytes)), t.codes)
		t.acts.Advance(cmp.Or(t.record, acts.ActRecord))
	}
	if t.unit == 0 && t.next != nil {
		t.groupBytes()
	}
	Label("loop")
	if t.unit == 1 {
		all()
		ADDQ(U32(uint32(t.unitBytes)), t.scales)
		DECQ(groups)
		JNE(LabelRef("loop"))
		return
	}
	if t.low == 0 {
		Comment("a superblock: its wide scales stay at hand while small walks over the narrow ones")
		t.small = GP64()
		MOVQ(t.scales, t.small)
	}
	inner := GP64()
	MOVQ(t.groupsOfUnit(), inner)
	t.eachBand(first)
	Label("group")
	all()
	if t.small != nil {
		ADDQ(U32(uint32(t.packing.scales*dense.BandRows)), t.small)
	}
	DECQ(inner)
	JNE(LabelRef("group"))
	t.eachBand(last)
	ADDQ(U32(uint32(t.unitBytes)), t.scales)
	SUBQ(t.groupsOfUnit(), groups)
	JNE(LabelRef("loop"))
}

// eachBand runs f, if there is one, for every band.
func (t *tile) eachBand(f func()) {
	if f == nil {
		return
	}
	for t.band = range t.bands {
		f()
	}
	t.band = 0
}

// vectors is the number of registers of a band in AVX2.
const vectors = 2

// narrow generates an AVX2 tile. Products of 4- and 6-bit codes add up in
// int16 (see RecordBytes in kernels/acts/groups.go for why they fit), those of bytes
// are widened one by one.
func narrow(p packing, bands, tokens int) {
	t := begin(p, "AVX2", bands, tokens)
	t.fetchStride()
	switch {
	case p.super():
		t.narrowQ6()
	case tokens > avx2Tokens:
		t.loop(nil, t.tallQ8(), nil)
	default:
		group := map[string]func() func(){"Q4": t.narrowQ4, "Q4M": t.narrowQ4, "Q41": t.narrowQ4, "Q8": t.narrowQ8, "FP4": t.narrowQ4}[p.name]()
		t.heldSums(t.widen(), group)
	}
	emit.Done()
}

// fetchStride makes a tile that gets no address to prefetch take what lies stride bytes
// further on.
func (t *tile) fetchStride() {
	if t.next == nil {
		Comment("What lies stride bytes further on is prefetched")
		t.next = Load(Param("stride"), GP64()).(reg.GPVirtual)
		ADDQ(t.codes, t.next)
	}
}

const heldTokens = 2 // up to which float32 sums stay in registers of 256 bits

// widen gives what converts the scales of a superblock of Q4M once for all its groups.
func (t *tile) widen() (first func()) {
	if t.name != "Q4M" {
		return nil
	}
	for range t.bands {
		t.wide = append(t.wide, AllocLocal(2*vectors*32))
	}
	return func() {
		for i := range 2 * vectors {
			d := YMM()
			VCVTPH2PS(t.scaleAt(16*i), d)
			VMOVUPS(d, t.wide[t.band].Offset(32*i))
		}
	}
}

// heldSums runs first, if there is one, before a superblock and group over all groups, with
// the sums of a few tokens in registers.
func (t *tile) heldSums(first, group func()) {
	var sums [][][]reg.VecVirtual
	if t.tokens <= heldTokens {
		for b := range t.bands {
			sums = append(sums, grid(t.tokens))
			t.each(func(i, v int) { VMOVUPS(t.y.At(i, b*64+v*32), sums[b][i][v]) })
		}
	}
	t.loop(first, func() {
		if sums != nil {
			t.sums = sums[t.band]
		}
		group()
	}, nil)
	for b := range sums {
		t.each(func(i, v int) { VMOVUPS(sums[b][i][v], t.y.At(i, b*64+v*32)) })
	}
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

// addWord adds the products of four columns, bytes at disp of the records, to
// int16 sums. code loads the columns' codes of a vector. Multiplying both
// vectors before adding is a little faster than one after the other.
func (t *tile) addWord(sum [][]reg.VecVirtual, disp int, fresh bool, code func(v int) reg.VecVirtual) {
	codes := []reg.VecVirtual{code(0), code(1)}
	for i := range t.tokens {
		a := YMM()
		VPBROADCASTD(t.acts.At(i, disp), a)
		if fresh {
			VPMADDUBSW(a, codes[0], sum[i][0])
			VPMADDUBSW(a, codes[1], sum[i][1])
			continue
		}
		first, second := YMM(), a
		if t.tokens == 1 { // codes are not needed again
			first, second = codes[0], codes[1]
		}
		VPMADDUBSW(a, codes[0], first)
		VPMADDUBSW(a, codes[1], second)
		VPADDW(first, sum[i][0], sum[i][0])
		VPADDW(second, sum[i][1], sum[i][1])
	}
}

// narrowQ4 gives the emitter of a group.
func (t *tile) narrowQ4() func() {
	low, ones := YMM(), YMM()
	emit.FillLanes(0x0f0f0f0f, low)
	if t.name != "Q4M" {
		emit.FillLanes(0x00010001, ones)
	}
	level := t.levels(false)
	nibble := func(p int, high bool) func(v int) reg.VecVirtual {
		return func(v int) reg.VecVirtual {
			c := YMM()
			if !high {
				VPAND(t.code(p*planeBytes+v*32), low, c)
			} else {
				VMOVDQU(t.code(p*planeBytes+v*32), c)
				VPSRLW(Imm(4), c, c)
				VPAND(low, c, c)
			}
			level(c)
			return c
		}
	}
	return func() {
		sum := grid(t.tokens)
		t.startNibbles(sum)
		for p := range 4 {
			t.addWord(sum, 4*p, p == 0 && t.least(), nibble(p, false))
			t.addWord(sum, 16+4*p, false, nibble(p, true))
		}
		if t.name != "Q4M" {
			t.each(func(i, v int) { VPMADDWD(ones, sum[i][v], sum[i][v]) })
			if t.least() {
				t.finish(sum, t.minimums())
			} else {
				t.finish(sum, nil)
			}
			return
		}
		sc := t.scalePairs()
		t.each(func(i, v int) { VPMADDWD(sc[v], sum[i][v], sum[i][v]) })
		t.finish(sum, t.minimums())
	}
}

// startNibbles sets the sums to what the offset of codes or levels takes off. Those of FP4
// may pass the ends of int16 before all 16 products are there, each at most 12·128: then
// they fit again.
func (t *tile) startNibbles(sum [][]reg.VecVirtual) {
	switch t.name {
	case "Q4":
		Comment("sums start at -8 times those of the activations")
		t.start(sum, acts.RecStart4)
	case "FP4":
		Commentf("sums start at -%d times those of the activations", fp4Offset)
		for i := range sum {
			VPBROADCASTD(t.acts.At(i, acts.RecStart4), sum[i][0])
			VPADDW(sum[i][0], sum[i][0], sum[i][0])
			VMOVDQA(sum[i][0], sum[i][1])
		}
	}
}

// A shuffle of bytes beside each other in both lanes of a register is one operation where
// VPMOVZX from memory is two, and then wants others.
var scaleShuffles, leastShuffles []Mem

// shuffled gives the sixteen bytes at disp of the narrow scales as shuffles arrange them: a byte of
// a row of vector v in each arranged one of its four, zero in the others.
func (t *tile) shuffled(tables *[]Mem, name string, disp int, arranged [4]bool) []reg.VecVirtual {
	if *tables == nil {
		for v := range vectors {
			*tables = append(*tables, emit.Table(fmt.Sprintf("%s%d", name, v), emit.Fill(32, func(i int) byte {
				if arranged[i%4] {
					return byte(8*v + i/4)
				}
				return 0x80
			})))
		}
	}
	both, of := YMM(), grid(1)[0]
	VBROADCASTI128(t.smallAt(disp), both)
	for v := range of {
		VPSHUFB((*tables)[v], both, of[v])
	}
	return of
}

// scalePairs gives the scales of Q4M's current group as int16 pairs: one multiply-add of such
// pairs scales and sums.
func (t *tile) scalePairs() []reg.VecVirtual {
	return t.shuffled(&scaleShuffles, "scalesQ4M", 64, [4]bool{0: true, 2: true})
}

// minimums gives those of the current group, which are dmin·m of Q4M.
func (t *tile) minimums() []reg.VecVirtual {
	if t.name == "Q41" {
		m := grid(1)[0]
		for v := range m {
			VCVTPH2PS(t.scaleAt((vectors+v)*16), m[v])
		}
		return m
	}
	least := t.shuffled(&leastShuffles, "leastQ4M", 80, [4]bool{0: true})
	for v := range vectors {
		VCVTDQ2PS(least[v], least[v])
		VMULPS(t.unitScale(vectors+v), least[v], least[v])
	}
	return least
}

// unitScale gives eight float16 scales of the unit as float32, d's first.
func (t *tile) unitScale(i int) Op {
	if t.wide != nil {
		return t.wide[t.band].Offset(32 * i)
	}
	d := YMM()
	VCVTPH2PS(t.scaleAt(16*i), d)
	return d
}

// pairs widens the sixteen signed byte scales at even and those at odd to int16 pairs.
func (t *tile) pairs(even, odd int) []reg.VecVirtual {
	scales := func(disp int) reg.VecVirtual {
		w := YMM()
		VPMOVSXBW(t.smallAt(disp), w)
		VPERMQ(Imm(0xd8), w, w)
		return w
	}
	first := scales(even)
	second := first
	if odd != even {
		second = scales(odd)
	}
	sc := grid(1)[0]
	VPUNPCKLWD(second, first, sc[0])
	VPUNPCKHWD(second, first, sc[1])
	return sc
}

// finish adds the int32 sums of a group to the float32 ones: times the band's
// scales, less the minimums, times the activations' scale.
func (t *tile) finish(sum [][]reg.VecVirtual, least []reg.VecVirtual) {
	d := []Op{t.unitScale(0), t.unitScale(1)}
	for i := range t.tokens {
		for v := range vectors {
			VCVTDQ2PS(sum[i][v], sum[i][v])
			VMULPS(d[v], sum[i][v], sum[i][v])
		}
		if least != nil {
			a := YMM()
			VBROADCASTSS(t.acts.At(i, acts.RecSum), a)
			for v := range vectors {
				VFNMADD231PS(a, least[v], sum[i][v])
			}
		}
		a := YMM()
		VBROADCASTSS(t.acts.At(i, acts.RecScale), a)
		for v := range vectors {
			if t.sums != nil {
				VFMADD231PS(a, sum[i][v], t.sums[i][v])
				continue
			}
			VFMADD213PS(t.y.At(i, v*32), a, sum[i][v])
			VMOVUPS(sum[i][v], t.y.At(i, v*32))
		}
	}
}

// narrowQ8 multiplies |w| with activations of w's sign, because the byte
// multiply-add wants one unsigned side. A pair's sum is at most 2·128·127. For
// several tokens the sign is put on by a complement and a subtraction, since
// the instruction for it waits for the units that multiply.
func (t *tile) narrowQ8() func() {
	ones, none := YMM(), YMM()
	emit.FillLanes(0x00010001, ones)
	if t.tokens > 1 {
		emit.ZeroY(none)
	}
	return func() {
		sum := grid(t.tokens)
		for j := range 8 {
			w, size := grid(1)[0], grid(1)[0]
			for v := range vectors {
				VMOVDQU(t.code(j*planeBytes+v*32), w[v])
				VPABSB(w[v], size[v])
				if t.tokens > 1 {
					VPCMPGTB(w[v], none, w[v])
				}
			}
			for i := range t.tokens {
				a := YMM()
				VPBROADCASTD(t.acts.At(i, 4*j), a)
				for v := range vectors {
					m := YMM()
					if t.tokens == 1 {
						VPSIGNB(w[v], a, m)
					} else {
						VPXOR(w[v], a, m)
						VPSUBB(w[v], m, m)
					}
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
	}
}
