// Package pool emits the pause of kernels/pool.
package pool

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Pause emits what a thread does while it polls.
func Pause() {
	emit.Text("pause", "func(n int)")
	emit.Contract("pause passes the time of n PAUSE instructions, n positive: the core's other thread has its units, and the end of polling costs no pipeline flush.")
	n := emit.Arg("n")
	Label("loop")
	PAUSE()
	DECQ(n)
	JNE(LabelRef("loop"))
	RET()
}
