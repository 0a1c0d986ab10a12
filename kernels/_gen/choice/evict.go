// Package choice emits what kernels/choice needs to measure products from memory.
package choice

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Evict emits the routine that takes memory out of all caches, and what asks whether the processor has
// its instruction.
func Evict() {
	emit.Text("evictLines", "func(p *byte, lines int)")
	emit.Contract("evictLines drops cache lines from all caches by CLFLUSHOPT, which writes back what was changed. lines is positive.")
	p, n := emit.Arg("p"), emit.Arg("lines")
	Label("loop")
	CLFLUSHOPT(Mem{Base: p})
	ADDQ(U8(64), p)
	DECQ(n)
	JNE(LabelRef("loop"))
	MFENCE() // no later load goes before
	RET()

	emit.Text("features", "func() (ebx uint32)")
	emit.Contract("features returns what CPUID says in EBX of leaf 7, which every processor with AVX2 has.")
	MOVL(U32(7), EAX)
	XORL(ECX, ECX)
	CPUID()
	Store(EBX, ReturnIndex(0))
	RET()
}
