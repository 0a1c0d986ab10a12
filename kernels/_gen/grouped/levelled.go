package grouped

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Codes that name small levels are multiplied as those of six bits are: a table has the levels,
// raised to be unsigned. 16 products of levels of up to 32 with what is Limited, and of up to 43
// with what is Tight, fit int16 (kernels/acts/groups.go), and AVX2's tiles over panels are Q6's.
var levelPackings = []packing{
	{name: "NL3K", codeBytes: 3 * planeBytes, unitBytes: (2 + 2*superGroups) * dense.BandRows, unit: superGroups, raised: 64, scales: 2},
	{name: "NL4S", codeBytes: nibbleBytes, unitBytes: (2 + superGroups) * dense.BandRows, unit: superGroups, raised: 32, scales: 1},
}

// factor is the place of Scale in matrix.Levels, of which routines get the address.
const factor = 16

// Masks of codes, in memory: registers run out.
var maskNibbles, maskPairs, maskBits Mem

// Levels emits their products.
func Levels() {
	mask := func(name string, b byte) Mem { return emit.Table(name, emit.Fill(64, func(int) byte { return b })) }
	maskNibbles, maskPairs, maskBits = mask("maskNibbles", 0x0f), mask("maskPairs", 0x33), mask("maskBits", 0x44)
	for _, p := range levelPackings {
		narrow(p, streamBands, 1)
		for _, t := range emit.Widths(1, p.tallest()) {
			narrow(p, 1, t)
		}
		panelWriter(p)
		dotGroup(p, streamBands, 1)
		for _, t := range p.dotTokens() {
			dotGroup(p, 1, t)
		}
		wide(p, "AVX512")
		for _, t := range emit.Widths(2, pairTokens) {
			pair(p, t)
		}
	}
}

// putFactor multiplies the scales of a band by that of its levels, if it has some.
func (t *tile) putFactor(d []reg.VecVirtual) {
	if t.raised == 0 {
		return
	}
	f := YMM()
	if d[0].Size() == 64 {
		f = ZMM()
	}
	VBROADCASTSS(Mem{Base: Load(Param("levels"), GP64()), Disp: factor}, f)
	for _, v := range d {
		VMULPS(f, v, v)
	}
}

// levelCodes loads levels, by vectors of so many bytes. Words p and p+2 of a half lie in the
// same bytes, so that the first is to be asked for before the second.
func (t *tile) levelCodes(bytes int) superCodes {
	vec, and, or, load := YMM, VPAND, VPOR, VMOVDQU
	if bytes == 64 {
		vec, and, or, load = ZMM, func(a, b, c Op) { VPANDD(a, b, c) }, func(a, b, c Op) { VPORD(a, b, c) }, func(a, b Op) { VMOVDQU64(a, b) }
	}
	levels, table, raise := Mem{Base: Load(Param("levels"), GP64())}, vec(), vec()
	if bytes == 64 {
		VBROADCASTI32X4(levels, table)
	} else {
		VBROADCASTI128(levels, table)
	}
	emit.FillLanes(uint32(t.raised)*0x01010101, raise)
	VPADDB(raise, table, table)
	shared := map[[3]int]reg.VecVirtual{} // what two words share, by band, half and vector
	return superCodes{[4]int{0, 2, 1, 3}, func(h, p, v int) reg.VecVirtual {
		at := [3]int{t.band, h, v}
		if p >= 2 {
			code := shared[at]
			VPSRLW(Imm(4), code, code)
			if t.codeBytes == nibbleBytes {
				and(maskNibbles, code, code)
			}
			VPSHUFB(code, table, code)
			return code
		}
		both, code := vec(), vec()
		shared[at] = both
		if t.codeBytes == nibbleBytes {
			load(t.code((2*h+p)*planeBytes+v*bytes), both)
			and(maskNibbles, both, code)
			VPSHUFB(code, table, code)
			return code
		}
		load(t.code(h*planeBytes+v*bytes), both)
		if p == 1 {
			VPSRLW(Imm(2), both, both)
		}
		and(maskPairs, both, both)
		load(t.code(2*planeBytes+v*bytes), code)
		switch shift := 2*h - p; {
		case shift > 0:
			VPSLLW(Imm(uint64(shift)), code, code)
		case shift < 0:
			VPSRLW(Imm(uint64(-shift)), code, code)
		}
		and(maskBits, code, code)
		or(code, both, both)
		VPSHUFB(both, table, code) // bits 3 and 7 are none, others of the high nibble count for nothing
		return code
	}}
}
