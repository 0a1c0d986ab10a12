package acts

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Layout of half a wide record; see kernels/acts/wide_amd64.go.
const (
	WideHalf  = 36
	WideOdd   = 16
	WideScale = 32
)

// wide generates the AVX2 routine that makes wide records.
func wide() {
	emit.Text("wideRecordsAVX2", "func(dst *byte, rec *byte, groups int)")
	emit.Contract("wideRecordsAVX2 makes wide records of groups ≥ 1 activation records.")
	dst, rec, groups := emit.Arg("dst"), emit.Arg("rec"), emit.Arg("groups")
	Label("group")
	odd, even := YMM(), YMM()
	VMOVDQU(Mem{Base: rec}, odd)
	VPSLLW(Imm(8), odd, even)
	VPSRAW(Imm(8), odd, odd)
	VPSRAW(Imm(8), even, even)
	d := GP32()
	MOVL(Mem{Base: rec, Disp: RecScale}, d)
	for h := range 2 {
		half := Mem{Base: dst, Disp: h * WideHalf}
		VEXTRACTI128(Imm(uint64(h)), even, half)
		VEXTRACTI128(Imm(uint64(h)), odd, half.Offset(WideOdd))
		MOVL(d, half.Offset(WideScale))
	}
	ADDQ(U32(ActRecord), rec)
	ADDQ(U32(2*WideHalf), dst)
	DECQ(groups)
	JNE(LabelRef("group"))
	emit.Done()
}
