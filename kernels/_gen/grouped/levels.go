package grouped

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// FP4's codes name twice the numbers of e2m1. VPSHUFB looks them up: as they are, or
// where VPDPBUSD wants them unsigned, with fp4Offset added, which is twice what the
// records' sums begin with.

const fp4Offset = 16

// e2m1 is what the codes mean.
var e2m1 = [16]int{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

func levelTable(name string, offset int) Mem {
	return emit.Table(name, emit.Fill(64, func(i int) byte { return byte(e2m1[i%16] + offset) }))
}

// The tables, once they are wanted.
var unsignedLevels, signedLevels Op

// levels gives what turns nibbles of wide registers, of 512 bits, or narrow ones into
// unsigned levels: nothing but for FP4.
func (t *tile) levels(wide bool) func(code reg.VecVirtual) {
	if t.name != "FP4" {
		return func(reg.VecVirtual) {}
	}
	if unsignedLevels == nil {
		unsignedLevels = levelTable("levelsFP4", fp4Offset)
	}
	table := YMM()
	if wide {
		table = ZMM()
		VMOVDQU64(unsignedLevels, table)
	} else {
		VMOVDQU(unsignedLevels, table)
	}
	return func(code reg.VecVirtual) { VPSHUFB(code, table, code) }
}

// narrowFP4 multiplies |w| with activations of w's sign, as narrowQ8 does. 16 products
// of 12·127 fit int16, so that sums are widened once.
func (t *tile) narrowFP4() func() {
	if signedLevels == nil {
		signedLevels = levelTable("signedFP4", 0)
	}
	low, ones, levels := YMM(), YMM(), YMM()
	emit.FillLanes(0x0f0f0f0f, low)
	emit.FillLanes(0x00010001, ones)
	VMOVDQU(signedLevels, levels)
	return func() {
		sum := grid(t.tokens)
		for j := range 8 {
			for v := range vectors {
				w, size := YMM(), YMM()
				if j < 4 {
					VPAND(t.code(j*planeBytes+v*32), low, w)
				} else {
					VMOVDQU(t.code((j-4)*planeBytes+v*32), w)
					VPSRLW(Imm(4), w, w)
					VPAND(low, w, w)
				}
				VPSHUFB(w, levels, w)
				VPABSB(w, size)
				for i := range t.tokens {
					a := YMM()
					VPBROADCASTD(t.acts.At(i, 4*j), a)
					VPSIGNB(w, a, a)
					if j == 0 {
						VPMADDUBSW(a, size, sum[i][v])
						continue
					}
					VPMADDUBSW(a, size, a)
					VPADDW(a, sum[i][v], sum[i][v])
				}
			}
		}
		t.each(func(i, v int) { VPMADDWD(ones, sum[i][v], sum[i][v]) })
		t.finish(sum, nil)
	}
}
