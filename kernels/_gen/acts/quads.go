package acts

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Layout of a quad record; see kernels/acts/quads_amd64.go.
const (
	QuadRecord = 272
	QuadTable  = 32 // bytes of a quad's
	QuadScale  = 256
	QuadStart  = 260

	groupQuads = 8
)

// TurnWords emits what VPSHUFB turns four words of four bytes over with.
func TurnWords(name string) Mem {
	return emit.Table(name, emit.Repeat16(emit.Fill(16, func(i int) byte { return byte(i%4*4 + i/4) })))
}

// quadRecords generates the AVX2 routine that makes quad records.
func quadRecords() {
	emit.Text("quadRecordsAVX2", "func(dst *byte, stride int, rec *byte, groups int)")
	emit.Contract("quadRecordsAVX2 makes quad records, stride bytes apart, of groups ≥ 1 activation records.")
	dst, stride, rec, groups := emit.Arg("dst"), emit.Arg("stride"), emit.Arg("rec"), emit.Arg("groups")
	turn := TurnWords("quadOrder")
	bits := func(name string, from int) Mem { // of an entry's number, from the from-th on, as bytes
		return emit.Table(name, emit.Fill(32, func(i int) byte { return byte(i / 2 >> (from + i%2) & 1) }))
	}
	first, second := bits("quadFirst", 0), bits("quadSecond", 2)
	turned, less := AllocLocal(32), AllocLocal(32)
	none, ones, low := YMM(), YMM(), YMM()
	bit := [2]reg.VecVirtual{YMM(), YMM()}
	VMOVDQU(first, bit[0])
	VMOVDQU(second, bit[1])
	emit.ZeroY(none)
	emit.FillLanes(0x01010101, ones)
	emit.FillLanes(0x001f001f, low)
	eight, t := XMM(), GP32()
	MOVL(U32(math.Float32bits(8)), t)
	VMOVD(t, eight)
	Label("group")
	q, n, size := YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: rec}, q)
	VPABSB(q, size)
	VPSHUFB(turn, q, q)
	VMOVDQU(q, turned)
	Comment("what a quad's negative activations add up to")
	VPSUBB(q, none, n)
	VPMAXSB(none, n, n)
	VPMADDUBSW(ones, n, n)
	words := YMM()
	VPSRLD(Imm(16), n, words)
	VPADDW(words, n, n)
	VMOVDQU(n, less)
	for i := range groupQuads {
		a, b, s := YMM(), YMM(), YMM()
		VPBROADCASTW(turned.Offset(4*i), a)
		VPBROADCASTW(turned.Offset(4*i+2), b)
		VPBROADCASTW(less.Offset(4*i), s)
		for k, q := range []reg.VecVirtual{a, b} {
			VPMADDUBSW(q, bit[k], q)
			VPADDW(q, s, s)
		}
		VPAND(low, s, a)
		VPSRLW(Imm(5), s, s)
		VPACKUSWB(s, a, a)
		VPERMQ(Imm(0xd8), a, a)
		VMOVDQU(a, Mem{Base: dst, Disp: (i%4*2 + i/4) * QuadTable})
	}
	d, half := XMM(), XMM()
	VMULSS(Mem{Base: rec, Disp: RecScale}, eight, d)
	VMOVSS(d, Mem{Base: dst, Disp: QuadScale})
	VPSADBW(none, size, size)
	VEXTRACTI128(Imm(1), size, half)
	VPADDD(size.AsX(), half, half)
	VPSHUFD(Imm(0x4e), half, d)
	VPADDD(d, half, half)
	VMOVD(half, t)
	ADDL(U32(math.Float32bits(1<<23)), t)
	MOVL(t, Mem{Base: dst, Disp: QuadStart})
	ADDQ(U32(ActRecord), rec)
	ADDQ(stride, dst)
	DECQ(groups)
	JNE(LabelRef("group"))
	emit.Done()
}
