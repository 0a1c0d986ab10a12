package acts

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Layout of a nibble record; see kernels/acts/nibbles_amd64.go.
const (
	NibbleRecord = 72
	NibbleHigh   = 32
	NibbleStart  = 64
	NibbleScale  = 68

	nibbleBias = 8192
)

// nibbles generates the AVX2 routine that makes nibble records.
func nibbles() {
	emit.Text("nibbleRecordsAVX2", "func(dst *byte, rec *byte, groups int)")
	emit.Contract("nibbleRecordsAVX2 makes nibble records of groups ≥ 1 activation records.")
	dst, rec, groups := emit.Arg("dst"), emit.Arg("rec"), emit.Arg("groups")
	low, flip, eight := YMM(), YMM(), XMM()
	emit.FillLanes(0x0f0f0f0f, low)
	emit.FillLanes(0x80808080, flip)
	t := GP32()
	MOVL(U32(math.Float32bits(8)), t)
	VMOVD(t, eight)
	Label("group")
	q, part := YMM(), YMM()
	VPXOR(Mem{Base: rec}, flip, q)
	VPAND(low, q, part)
	VMOVDQU(part, Mem{Base: dst})
	VPSRLW(Imm(4), q, q)
	VPAND(low, q, q)
	VMOVDQU(q, Mem{Base: dst, Disp: NibbleHigh})
	Comment("-8·Σq / 8 - the tables' offset")
	start, d := GP32(), XMM()
	MOVL(Mem{Base: rec, Disp: RecSum8}, start)
	SARL(Imm(3), start)
	SUBL(U32(nibbleBias), start)
	MOVL(start, Mem{Base: dst, Disp: NibbleStart})
	VMULSS(Mem{Base: rec, Disp: RecScale}, eight, d)
	VMOVSS(d, Mem{Base: dst, Disp: NibbleScale})
	ADDQ(U32(ActRecord), rec)
	ADDQ(U32(NibbleRecord), dst)
	DECQ(groups)
	JNE(LabelRef("group"))
	emit.Done()
}
