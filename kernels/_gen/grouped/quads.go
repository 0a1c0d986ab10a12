package grouped

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Four bits of a row of weights name one of 16 sums of four columns, which VPSHUFB looks up for
// 32 rows of two bands at once, a token's low parts of five bits and then its high ones of
// four: those of a group's eight quads add up in bytes. 32 rows and a group take a token 46
// vector operations, where multiply-adds take 76, and 24 more for all tokens together. Words of a
// unit's groups wait in memory, so that floats stay in registers.

const (
	quadBands = 2
	quadSums  = quadBands * dense.BandRows * 2 // bytes of the sums of a group
)

// quads emits the tile.
func quads() {
	p := lowPackings[0]
	name := "quads" + p.name + "AVX2"
	emit.Text(name, "func(y *float32, ld int, codes *byte, scales *byte, stride int, recs *byte, ldr int, tokens int, groups int, next uintptr, words *byte)")
	emit.Contract(name+" adds to y[tokens][32], ld values a token, the products of groups ≥ 1 groups, whole scale",
		"units, of two bands of "+p.name+" that are stride bytes apart with quad records, those of groups ldr bytes",
		"apart. It prefetches as many bytes at next, which need not be memory at all, and works in",
		fmt.Sprintf("words[tokens][%d].", p.unit*quadSums))
	quadTurn = acts.TurnWords("quadTurn")
	quadLow = emit.Table("quadLow", emit.Fill(32, func(int) byte { return 0x0f }))
	t := &tile{packing: p, bands: quadBands}
	t.next = Load(Param("next"), GP64()).(reg.GPVirtual)
	t.codes = Load(Param("codes"), GP64()).(reg.GPVirtual)
	t.scales = Load(Param("scales"), GP64()).(reg.GPVirtual)
	t.stride = Load(Param("stride"), GP64()).(reg.GPVirtual)
	recs, ldr, words := GP64(), emit.Arg("ldr").(reg.GPVirtual), emit.Arg("words")
	Load(Param("recs"), recs)
	groups := emit.Arg("groups")
	weights, upper := YMM(), YMM()
	emit.FillLanes(0x40024002, weights) // twice a low part, 64 times a high one
	emit.FillLanes(math.Float32bits(1<<23)|math.Float32bits(1<<23)>>16, upper)
	// each runs f for all tokens, with their records of group g of the unit and their words.
	each := func(label string, g int, f func(rec, at reg.Register)) {
		rec, at, left := GP64(), GP64(), GP64()
		MOVQ(recs, rec)
		for range g {
			ADDQ(ldr, rec)
		}
		MOVQ(words, at)
		Load(Param("tokens"), left)
		Label(label)
		f(rec, at)
		ADDQ(U32(acts.QuadRecord), rec)
		ADDQ(U32(uint32(p.unit*quadSums)), at)
		DECQ(left)
		JNE(LabelRef(label))
	}
	Label("unit")
	for g := range p.unit {
		t.eachBand(t.fetch)
		index := t.quadIndices(g)
		each(fmt.Sprintf("token%d", g), g, func(rec, at reg.Register) {
			for k, w := range quadWords(rec, index, weights) {
				VMOVDQU(w, Mem{Base: at, Disp: g*quadSums + k*32})
			}
		})
	}
	var d []reg.VecVirtual
	for t.band = range quadBands {
		d = append(d, lowD(t.superScales())...)
	}
	t.band = 0
	y, ld, ldr3 := emit.Arg("y"), emit.Arg("ld"), GP64()
	SHLQ(Imm(2), ld)
	LEAQ(Mem{Base: ldr, Index: ldr, Scale: 2}, ldr3)
	each("scale", 0, func(rec, at reg.Register) {
		whole := make([]reg.VecVirtual, len(d))
		for g, r := range []Mem{{Base: rec}, {Base: rec, Index: ldr, Scale: 1}, {Base: rec, Index: ldr, Scale: 2}, {Base: rec, Index: ldr3, Scale: 1}} {
			f := quadFloats(r, Mem{Base: at, Disp: g * quadSums}, upper)
			a := YMM()
			VBROADCASTSS(r.Offset(acts.QuadScale), a)
			for v := range f {
				if g == 0 {
					whole[v] = f[v]
					VMULPS(a, f[v], f[v])
				} else {
					VFMADD231PS(a, f[v], whole[v])
				}
			}
		}
		for v, w := range whole {
			out := Mem{Base: y, Disp: v * 32}
			VFMADD213PS(out, d[v], w)
			VMOVUPS(w, out)
		}
		ADDQ(ld, y)
	})
	LEAQ(Mem{Base: recs, Index: ldr, Scale: 4}, recs)
	ADDQ(U32(uint32(p.unit*p.codeBytes)), t.codes)
	ADDQ(U32(uint32(p.unitBytes)), t.scales)
	SUBQ(U32(uint32(p.unit)), groups)
	JNE(LabelRef("unit"))
	emit.Done()
}

// quadTurn turns four rows of four bytes over, and quadLow has the low nibbles of bytes.
var quadTurn, quadLow Mem

// quadIndices gives the nibbles of group g of the unit, a byte a row: quad 2b+h at 2b+h. The bytes
// stand as quadSums wants them.
func (t *tile) quadIndices(g int) (index [8]reg.VecVirtual) {
	turn, low := YMM(), YMM()
	VMOVDQU(quadTurn, turn)
	var raw []reg.VecVirtual
	for t.band = range quadBands {
		for v := range vectors {
			r := YMM()
			VMOVDQU(t.code(g*t.codeBytes+v*32), r)
			VPSHUFB(turn, r, r)
			raw = append(raw, r)
		}
	}
	t.band = 0
	VMOVDQU(quadLow, low)
	for b, both := range acts.Transpose4(raw) {
		high := YMM()
		VPSRLW(Imm(4), both, high)
		VPAND(low, both, both)
		VPAND(low, high, high)
		index[2*b], index[2*b+1] = both, high
	}
	return index
}

// quadWords gives twice the sums of the entries that a token's tables have for a group: of each lane
// bytes 0 to 7 first.
func quadWords(rec reg.Register, index [8]reg.VecVirtual, weights reg.VecVirtual) [2]reg.VecVirtual {
	var parts [2]reg.VecVirtual // low and high
	for i, x := range index {
		for k := range parts {
			entry := YMM()
			VBROADCASTI128(Mem{Base: rec, Disp: i*acts.QuadTable + k*16}, entry)
			VPSHUFB(x, entry, entry)
			if i == 0 {
				parts[k] = entry
				continue
			}
			VPADDB(entry, parts[k], parts[k])
		}
	}
	words := [2]reg.VecVirtual{YMM(), parts[0]}
	VPUNPCKLBW(parts[1], parts[0], words[0])
	VPUNPCKHBW(parts[1], parts[0], words[1])
	for _, w := range words {
		VPMADDUBSW(weights, w, w)
	}
	return words
}

// quadFloats gives the sums of a group as float32, two bands' vectors: words below the upper bits of 2²³
// are fractions of floats.
func quadFloats(rec, words Mem, upper reg.VecVirtual) (f [2 * vectors]reg.VecVirtual) {
	start := YMM()
	VBROADCASTSS(rec.Offset(acts.QuadStart), start)
	for i := range 2 {
		w := YMM()
		VMOVDQU(words.Offset(32*i), w)
		f[2*i], f[2*i+1] = YMM(), w
		VPUNPCKLWD(upper, w, f[2*i])
		VPUNPCKHWD(upper, w, f[2*i+1])
	}
	for _, v := range f {
		VSUBPS(start, v, v)
	}
	return f
}
