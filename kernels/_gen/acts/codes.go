// Package acts emits what makes activations ready, for kernels/acts.
package acts

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Kernels emits what makes activations ready: AVX2, in AVX-512 machines too.
func Kernels() {
	absmax()
	quantise()
	for _, g := range []int{4, 5} {
		for n := 1; n <= 4; n++ {
			quads(g, n)
		}
	}
	lanes16()
	lanes32()
	quantize()
	nibbles()
	wide()
	quadRecords()
}

func absmax() {
	emit.Text("absmaxAVX2", "func(x *float32, n int) uint32")
	emit.Contract("absmaxAVX2 is the largest of n float32 as bits without sign. n is a positive multiple of 32.")
	x, n := emit.Arg("x"), emit.Arg("n")
	sign := YMM()
	VPCMPEQD(sign, sign, sign)
	VPSRLD(Imm(1), sign, sign)
	var acc [4]reg.VecVirtual
	for i := range acc {
		acc[i] = YMM()
		emit.ZeroY(acc[i])
	}
	Label("loop")
	for i := range acc {
		v := YMM()
		VPAND(Mem{Base: x, Disp: 32 * i}, sign, v)
		VPMAXUD(v, acc[i], acc[i])
	}
	ADDQ(Imm(128), x)
	SUBQ(Imm(32), n)
	JNE(LabelRef("loop"))
	VPMAXUD(acc[1], acc[0], acc[0])
	VPMAXUD(acc[3], acc[2], acc[2])
	VPMAXUD(acc[2], acc[0], acc[0])
	h := XMM()
	a := acc[0].AsX()
	VEXTRACTI128(Imm(1), acc[0], h)
	VPMAXUD(h, a, a)
	VPSHUFD(Imm(0x4e), a, h)
	VPMAXUD(h, a, a)
	VPSHUFD(Imm(0xb1), a, h)
	VPMAXUD(h, a, a)
	r := GP32()
	VMOVD(a, r)
	Store(r, ReturnIndex(0))
	emit.Done()
}

func quantise() {
	order := emit.Table("packOrder", emit.Fill(32, func(i int) byte {
		if i%4 != 0 {
			return 0
		}
		return []byte{0, 4, 1, 5, 2, 6, 3, 7}[i/4]
	}))
	ones8 := emit.Table("ones8", emit.Fill(32, func(int) byte { return 1 }))
	ones16 := emit.Table("ones16", emit.Words(16, 1))
	emit.Text("quantiseAVX2", "func(q *int8, x *float32, n int, inv float32) int32")
	emit.Contract("quantiseAVX2 sets q to x·inv rounded half to even and returns the sum of q.",
		"n is a positive multiple of 32; |x·inv| must stay below 127.5.")
	q, x, n := emit.Arg("q"), emit.Arg("x"), emit.Arg("n")
	inv := Load(Param("inv"), XMM())
	f, perm, one8, sum := YMM(), YMM(), YMM(), YMM()
	VBROADCASTSS(inv.(reg.VecVirtual), f)
	VMOVDQU(order, perm)
	VMOVDQU(ones8, one8)
	emit.ZeroY(sum)
	Label("loop")
	var v [4]reg.VecVirtual
	for i := range v {
		v[i] = YMM()
		VMULPS(Mem{Base: x, Disp: 32 * i}, f, v[i])
		VCVTPS2DQ(v[i], v[i])
	}
	Comment("Narrow to bytes; packing works within lanes, one permutation puts dwords in order")
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	VPACKSSWB(v[2], v[0], v[0])
	VPERMD(v[0], perm, v[0])
	VMOVDQU(v[0], Mem{Base: q})
	t := YMM()
	VPMADDUBSW(v[0], one8, t)
	VPMADDWD(ones16, t, t)
	VPADDD(t, sum, sum)
	ADDQ(Imm(128), x)
	ADDQ(Imm(32), q)
	SUBQ(Imm(32), n)
	JNE(LabelRef("loop"))
	h := XMM()
	a := sum.AsX()
	VEXTRACTI128(Imm(1), sum, h)
	VPADDD(h, a, a)
	VPSHUFD(Imm(0x4e), a, h)
	VPADDD(h, a, a)
	VPSHUFD(Imm(0xb1), a, h)
	VPADDD(h, a, a)
	r := GP32()
	VMOVD(a, r)
	Store(r, ReturnIndex(0))
	emit.Done()
}

// quads emits the arrangement of n tokens' blocks: for each of g trit
// positions the 4 bytes of a block that stand there.
func quads(g, n int) {
	// One shuffle picks dword j = bytes {j, g+j, 2g+j, 3g+j} of 16; for g = 5 a second one, of
	// the 16 bytes that end the block, adds what lies beyond, and a third one makes dword 4.
	pick := func(name string, from int, dword func(i int) int) Mem {
		return emit.Table(fmt.Sprintf("%s%dx%d", name, g, n), emit.Fill(16, func(i int) byte {
			at := i%4*g + dword(i)
			if dword(i) >= g || at < from || at > from+15 || from > 0 && at < 16 && dword(i) < 4 {
				return 0x80
			}
			return byte(at - from)
		}))
	}
	first := pick("quadsFirst", 0, func(i int) int { return i / 4 })
	var rest, fifth Mem
	if g == 5 {
		rest = pick("quadsRest", 4, func(i int) int { return i / 4 })
		fifth = pick("quadsFifth", 4, func(i int) int { return i/4 + 4 })
	}
	emit.Text(fmt.Sprintf("quads%dx%dAVX2", g, n), "func(dst, q *int8, stride, blocks, step int)")
	emit.Contract(fmt.Sprintf("quads%dx%dAVX2 arranges %d rows of q, stride bytes apart, as [block][%d][%d][4];", g, n, n, g, n),
		"step is the distance of two trit positions in dst. blocks is positive.")
	dst, q, stride, blocks, step := emit.Arg("dst"), emit.Arg("q"), emit.Arg("stride"), emit.Arg("blocks"), emit.Arg("step")
	s3 := GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, s3)
	rows := []Mem{{Base: q}, {Base: q, Index: stride, Scale: 1}, {Base: q, Index: stride, Scale: 2}, {Base: q, Index: s3, Scale: 1}}[:n]
	mask := XMM()
	VMOVDQU(first, mask)
	Label("loop")
	v, w := make([]reg.VecVirtual, n), make([]reg.VecVirtual, n)
	for i, m := range rows {
		v[i] = XMM()
		VMOVDQU(m, v[i])
		VPSHUFB(mask, v[i], v[i])
		if g == 5 {
			m.Disp = 4
			w[i] = XMM()
			t := XMM()
			VMOVDQU(m, w[i])
			VPSHUFB(rest, w[i], t)
			VPOR(t, v[i], v[i])
			VPSHUFB(fifth, w[i], w[i])
		}
	}
	store := func(o reg.VecVirtual) { // the first n dwords
		switch n {
		case 1:
			VMOVD(o, Mem{Base: dst})
		case 2, 3:
			VMOVQ(o, Mem{Base: dst})
			if n == 3 {
				VPEXTRD(Imm(2), o, Mem{Base: dst, Disp: 8})
			}
		case 4:
			VMOVDQU(o, Mem{Base: dst})
		}
		ADDQ(step, dst)
	}
	if n == 1 {
		store(v[0])
		for j := 1; j < 4; j++ {
			VPEXTRD(Imm(uint64(j)), v[0], Mem{Base: dst})
			ADDQ(step, dst)
		}
	} else {
		for len(v) < 4 { // rows whose dwords are not stored
			v, w = append(v, v[0]), append(w, w[0])
		}
		for _, o := range Transpose4(v) {
			store(o)
		}
	}
	if g == 5 {
		if n > 1 {
			VPUNPCKLDQ(w[1], w[0], w[0])
		}
		if n > 2 {
			t := XMM()
			VPUNPCKLDQ(w[3], w[2], t)
			VPUNPCKLQDQ(t, w[0], w[0])
		}
		store(w[0])
	}
	ADDQ(Imm(uint64(4*g)), q)
	DECQ(blocks)
	JNE(LabelRef("loop"))
	emit.Done()
}

// Transpose4 exchanges dwords and registers, within each 128-bit lane.
func Transpose4(v []reg.VecVirtual) [4]reg.VecVirtual {
	var t, o [4]reg.VecVirtual
	for i := range t {
		t[i], o[i] = alike(v[0]), alike(v[0])
	}
	VPUNPCKLDQ(v[1], v[0], t[0])
	VPUNPCKHDQ(v[1], v[0], t[1])
	VPUNPCKLDQ(v[3], v[2], t[2])
	VPUNPCKHDQ(v[3], v[2], t[3])
	VPUNPCKLQDQ(t[2], t[0], o[0])
	VPUNPCKHQDQ(t[2], t[0], o[1])
	VPUNPCKLQDQ(t[3], t[1], o[2])
	VPUNPCKHQDQ(t[3], t[1], o[3])
	return o
}

// lanes16 emits the byte transpose of 16 rows.
func lanes16() {
	emit.Text("lanes16AVX2", "func(dst, q *int8, stride, n int)")
	emit.Contract("lanes16AVX2 sets dst[n][16] to the transpose of 16 rows of q, stride bytes apart.",
		"n is a positive multiple of 16.")
	dst, stride, n := emit.Arg("dst"), emit.Arg("stride"), emit.Arg("n")
	q := [4]reg.Register{emit.Arg("q"), GP64(), GP64(), GP64()}
	s3, s4 := GP64(), GP64()
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, s3)
	LEAQ(Mem{Base: stride, Index: s3, Scale: 1}, s4)
	for i := 1; i < 4; i++ {
		LEAQ(Mem{Base: q[i-1], Index: s4, Scale: 1}, q[i])
	}
	row := func(i int) Mem {
		m := Mem{Base: q[i/4]}
		switch i % 4 {
		case 1:
			m.Index, m.Scale = stride, 1
		case 2:
			m.Index, m.Scale = stride, 2
		case 3:
			m.Index, m.Scale = s3, 1
		}
		return m
	}
	Label("loop")
	Comment("Rows i and i+8 share a register; three rounds of interleaving leave 8 rows of two", "columns in each lane, and a permutation joins the lanes")
	v := make([]reg.VecVirtual, 8)
	for i := range v {
		v[i] = YMM()
		VBROADCASTI128(row(i), v[i]) // a plain 128-bit load would leave the upper half to the allocator as read before written
		VINSERTI128(Imm(1), row(i+8), v[i], v[i])
	}
	v = interleave8(v)
	for i := range v {
		VPERMQ(Imm(0xd8), v[i], v[i])
		VMOVDQU(v[i], Mem{Base: dst, Disp: 32 * i})
	}
	for i := range q {
		ADDQ(Imm(16), q[i])
	}
	ADDQ(U32(256), dst)
	SUBQ(Imm(16), n)
	JNE(LabelRef("loop"))
	emit.Done()
}

// interleave8 interleaves the bytes of 8 registers, within each 128-bit lane:
// result i has 8 bytes of column 2i, then as many of column 2i+1.
func interleave8(v []reg.VecVirtual) []reg.VecVirtual {
	for half := 4; half >= 1; half /= 2 {
		next := make([]reg.VecVirtual, 0, 8)
		for set := 0; set < 8; set += 2 * half {
			// A set holds 2·half registers of the same columns, in row order.
			lo, hi := make([]reg.VecVirtual, half), make([]reg.VecVirtual, half)
			for i := range half {
				lo[i], hi[i] = alike(v[0]), alike(v[0])
				VPUNPCKLBW(v[set+half+i], v[set+i], lo[i])
				VPUNPCKHBW(v[set+half+i], v[set+i], hi[i])
			}
			next = append(append(next, lo...), hi...)
		}
		v = next
	}
	return v
}

// alike returns a new register of v's size.
func alike(v reg.VecVirtual) reg.VecVirtual {
	switch v.Size() {
	case 64:
		return ZMM()
	case 32:
		return YMM()
	}
	return XMM()
}

// lanes32 emits the byte transpose of 32 rows.
func lanes32() {
	emit.Text("lanes32AVX512", "func(dst, q *int8, stride, n int)")
	emit.Contract("lanes32AVX512 sets dst[n][32] to the transpose of 32 rows of q, stride bytes apart.",
		"n is a positive multiple of 16.")
	joined := emit.Table("joinLanes", emit.Fill(64, func(i int) byte {
		if i%8 != 0 {
			return 0
		}
		return []byte{0, 2, 4, 6, 1, 3, 5, 7}[i/8]
	}))
	dst, q, stride, n := emit.Arg("dst"), emit.Arg("q"), emit.Arg("stride"), emit.Arg("n")
	order := ZMM()
	VMOVDQU64(joined, order)
	s8, row := GP64(), GP64()
	MOVQ(stride, s8)
	SHLQ(Imm(3), s8)
	s24 := GP64()
	LEAQ(Mem{Base: s8, Index: s8, Scale: 2}, s24)
	Label("loop")
	Comment("Rows i, i+8, i+16 and i+24 share a register; three rounds of interleaving leave 8 rows of",
		"two columns in each lane, and a permutation joins the lanes")
	MOVQ(q, row)
	v := make([]reg.VecVirtual, 8)
	for i := range v {
		v[i] = ZMM()
		VBROADCASTI32X4(Mem{Base: row}, v[i])
		VINSERTI32X4(Imm(1), Mem{Base: row, Index: s8, Scale: 1}, v[i], v[i])
		VINSERTI32X4(Imm(2), Mem{Base: row, Index: s8, Scale: 2}, v[i], v[i])
		VINSERTI32X4(Imm(3), Mem{Base: row, Index: s24, Scale: 1}, v[i], v[i])
		ADDQ(stride, row)
	}
	for i, o := range interleave8(v) {
		VPERMQ(o, order, o)
		VMOVDQU64(o, Mem{Base: dst, Disp: 64 * i})
	}
	ADDQ(Imm(16), q)
	ADDQ(U32(512), dst)
	SUBQ(Imm(16), n)
	JNE(LabelRef("loop"))
	emit.Done()
}
