package tiles

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Of the layout that hexagon/layout describes.
const (
	line  = 128      // bytes: a plane of 8 columns of 128 rows
	plane = 8 * line // from a plane to the next
	pairs = side / 2 // of rows in a tile
	code  = 16       // values of a row
)

// unpack emits the way from codes in bit planes to a tile. The bits of 32 columns of
// two rows, put together, are masks of the tile's numbers; codes are sums under masks.
func unpack(bits int) {
	name := fmt.Sprintf("unpack%dAVX512", bits)
	emit.Text(name, "func(dst *uint16, lines *byte, values *uint16)")
	emit.Contract(name+" makes dst[1024], a tile, of 32 rows' bytes of the 4 lines of each plane,",
		"highest first, and values[32][16] of each row's codes.")
	dst, lines, values := emit.Arg("dst"), emit.Arg("lines"), emit.Arg("values")
	masks := AllocLocal(bits * pairs * 8)
	splat := func(v uint32, vec reg.VecVirtual, broadcast func(ops ...Op)) reg.VecVirtual {
		r := GP32()
		MOVL(U32(v), r)
		broadcast(r, vec)
		return vec
	}
	even, odd := splat(0x55555555, YMM(), VPBROADCASTD), splat(0xaaaaaaaa, YMM(), VPBROADCASTD)
	for i := range bits {
		var l [4]reg.VecVirtual
		for j := range l {
			l[j] = YMM()
			VMOVDQU(Mem{Base: lines, Disp: i*plane + j*line}, l[j])
		}
		Commentf("plane %d: the four bytes of a row side by side", bits-1-i)
		a, b, c, d := YMM(), YMM(), YMM(), YMM()
		VPUNPCKLBW(l[1], l[0], a)
		VPUNPCKHBW(l[1], l[0], b)
		VPUNPCKLBW(l[3], l[2], c)
		VPUNPCKHBW(l[3], l[2], d)
		var rows [4]reg.VecVirtual // of bytes 4i to 4i+3 and 16 more: rows 0, 2, 1, 3
		for j := range rows {
			rows[j] = YMM()
		}
		VPUNPCKLWD(c, a, rows[0])
		VPUNPCKHWD(c, a, rows[1])
		VPUNPCKLWD(d, b, rows[2])
		VPUNPCKHWD(d, b, rows[3])
		for j, first := range rows {
			second, lo, hi, t := YMM(), YMM(), YMM(), YMM()
			VPSHUFD(U8(0x0e), first, second)
			VPAND(even, first, lo) // columns 0 to 15 are the even bits
			VPAND(even, second, t)
			VPADDD(t, t, t)
			VPOR(t, lo, lo)
			VPSRLD(U8(1), first, first)
			VPAND(even, first, hi)
			VPAND(odd, second, second)
			VPOR(second, hi, hi)
			VPUNPCKLDQ(hi, lo, t)
			VMOVDQU(t.AsX(), masks.Offset(i*pairs*8+16*j))
			VEXTRACTI128(U8(1), t, masks.Offset(i*pairs*8+64+16*j))
		}
	}
	Comment("the odd row's values are the upper 16 of a register")
	base := splat(code<<16, ZMM(), VPBROADCASTD)
	bit := make([]reg.VecVirtual, bits)
	for i := range bit {
		bit[i] = splat(1<<(bits-1-i), ZMM(), VPBROADCASTW)
	}
	n, mask := GP64(), GP64()
	LEAQ(masks, mask)
	MOVQ(U32(pairs), n)
	Label("pair")
	for h := range 2 {
		code, out := ZMM(), ZMM()
		VMOVDQA64(base, code)
		for i := range bits {
			k := K()
			KMOVD(Mem{Base: mask, Disp: i*pairs*8 + 4*h}, k)
			VPADDW(bit[i], code, k, code)
		}
		VPERMW(Mem{Base: values}, code, out)
		VMOVDQU64(out, Mem{Base: dst, Disp: 64 * h})
	}
	ADDQ(Imm(8), mask)
	ADDQ(Imm(2*2*code), values)
	ADDQ(U32(128), dst)
	DECQ(n)
	JNE(LabelRef("pair"))
	emit.Done()
}

// scaleValues emits the making of rows' values: fp16(fp16(v·scale) + offset).
func scaleValues() {
	emit.Text("scaleValuesAVX512", "func(values *uint16, v, scales, offsets *float32, rows int)")
	emit.Contract("scaleValuesAVX512 makes values[rows][16] of v[16], a scale a row and, unless offsets is nil,",
		"an offset a row. rows is positive.")
	values, v, scales, offsets := emit.Arg("values"), emit.Arg("v"), emit.Arg("scales"), emit.Arg("offsets")
	n := Load(Param("rows"), GP64())
	of, most, least := ZMM(), ZMM(), ZMM()
	VMOVUPS(Mem{Base: v}, of)
	limits(most, least)
	row := func(offset bool) {
		f, h := ZMM(), YMM()
		VMULPS_BCST(Mem{Base: scales}, of, f)
		VMINPS(most, f, f)
		VMAXPS(least, f, f)
		VCVTPS2PH(U8(0), f, h)
		if offset {
			VCVTPH2PS(h, f)
			VADDPS_BCST(Mem{Base: offsets}, f, f)
			VMINPS(most, f, f)
			VMAXPS(least, f, f)
			VCVTPS2PH(U8(0), f, h)
			ADDQ(Imm(4), offsets)
		}
		VMOVDQU(h, Mem{Base: values})
		ADDQ(Imm(4), scales)
		ADDQ(Imm(2*code), values)
		DECQ(n)
	}
	TESTQ(offsets, offsets)
	JE(LabelRef("none"))
	Label("offset")
	row(true)
	JNE(LabelRef("offset"))
	JMP(LabelRef("done"))
	Label("none")
	row(false)
	JNE(LabelRef("none"))
	Label("done")
	emit.Done()
}

// limits loads ±65504.
func limits(most, least reg.VecVirtual) {
	r := GP32()
	x := XMM()
	MOVL(U32(0x477fe000), r)
	VMOVD(r, x)
	VBROADCASTSS(x, most)
	MOVL(U32(0xc77fe000), r)
	VMOVD(r, x)
	VBROADCASTSS(x, least)
}

// narrowPairs emits the way back: sums to a tile.
func narrowPairs() {
	emit.Text("narrowPairsAVX2", "func(dst *uint16, src *float32, scale float32, pairs int)")
	emit.Contract("narrowPairsAVX2 makes pairs ≥ 1 of rows of 32 fp16 that stand interleaved of rows of float32",
		"that stand one after the other, times scale, at most ±65504.")
	dst, src := emit.Arg("dst"), emit.Arg("src")
	scale, most, least := YMM(), YMM(), YMM()
	x := XMM()
	Load(Param("scale"), x)
	VBROADCASTSS(x, scale)
	limits(most, least)
	n := Load(Param("pairs"), GP64())
	Label("loop")
	for i := range 4 {
		var h [2]reg.VecVirtual
		for r := range h {
			f := YMM()
			h[r] = XMM()
			VMULPS(Mem{Base: src, Disp: r*row + 32*i}, scale, f)
			VMINPS(most, f, f)
			VMAXPS(least, f, f)
			VCVTPS2PH(U8(0), f, h[r])
		}
		lo, hi := XMM(), XMM()
		VPUNPCKLWD(h[1], h[0], lo)
		VPUNPCKHWD(h[1], h[0], hi)
		VMOVDQU(lo, Mem{Base: dst, Disp: 32 * i})
		VMOVDQU(hi, Mem{Base: dst, Disp: 32*i + 16})
	}
	ADDQ(U32(2*row), src)
	ADDQ(U32(128), dst)
	DECQ(n)
	JNE(LabelRef("loop"))
	emit.Done()
}

// superGroups emits the way from super-groups to fp16. Halfword l of the codes has those
// of numbers l, 128 + l, 64 + l and 192 + l, lowest first; 32 numbers share a scale.
func superGroups() {
	const groups, size = 8, 8*2 + 128
	emit.Text("superGroupsAVX512", "func(dst *uint16, src *byte, v *float32, n int)")
	emit.Contract("superGroupsAVX512 makes dst[256·n], n ≥ 1, of super-groups of 144 bytes: 8 scales, 256 codes of v[16].")
	dst, src, v := emit.Arg("dst"), emit.Arg("src"), emit.Arg("v")
	n := Load(Param("n"), GP64())
	of, most, least, low := ZMM(), ZMM(), ZMM(), ZMM()
	VMOVUPS(Mem{Base: v}, of)
	limits(most, least)
	r := GP32()
	MOVL(U32(0x000f000f), r)
	VPBROADCASTD(r, low)
	scales := AllocLocal(groups * 4)
	Label("loop")
	s := YMM()
	VCVTPH2PS(Mem{Base: src}, s)
	VMOVUPS(s, scales)
	var codes [2]reg.VecVirtual
	for i := range codes {
		codes[i] = ZMM()
		VMOVDQU64(Mem{Base: src, Disp: 16 + 64*i}, codes[i])
	}
	for g := range groups {
		f, q := ZMM(), ZMM()
		table := ZMM()
		VMULPS_BCST(scales.Offset(4*g), of, f)
		VMINPS(most, f, f)
		VMAXPS(least, f, f)
		VCVTPS2PH(U8(0), f, table.AsY())
		// Groups 0 and 1 are the lowest codes, 4 and 5 the next, then 2 and 3, 6 and 7.
		if shift := []uint8{0, 8, 4, 12}[g/2]; shift > 0 {
			VPSRLW(U8(shift), codes[g%2], q)
			VPANDQ(low, q, q)
		} else {
			VPANDQ(low, codes[g%2], q)
		}
		VPERMW(table, q, q)
		VMOVDQU64(q, Mem{Base: dst, Disp: 64 * g})
	}
	ADDQ(U32(size), src)
	ADDQ(U32(groups*64), dst)
	DECQ(n)
	JNE(LabelRef("loop"))
	emit.Done()
}
