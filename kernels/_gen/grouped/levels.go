package grouped

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// FP4's codes name twice the numbers of e2m1. VPSHUFB looks them up with fp4Offset added,
// since products want them unsigned: twice what the records' sums begin with.

const fp4Offset = 16

// e2m1 is what the codes mean.
var e2m1 = [16]int{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// fp4Levels is the table, once it is wanted.
var fp4Levels Op

// levels gives what turns nibbles of wide registers, of 512 bits, or narrow ones into
// unsigned levels: nothing but for FP4.
func (t *tile) levels(wide bool) func(code reg.VecVirtual) {
	if t.name != "FP4" {
		return func(reg.VecVirtual) {}
	}
	if fp4Levels == nil {
		fp4Levels = emit.Table("levelsFP4", emit.Fill(64, func(i int) byte { return byte(e2m1[i%16] + fp4Offset) }))
	}
	table := YMM()
	if wide {
		table = ZMM()
		VMOVDQU64(fp4Levels, table)
	} else {
		VMOVDQU(fp4Levels, table)
	}
	return func(code reg.VecVirtual) { VPSHUFB(code, table, code) }
}
