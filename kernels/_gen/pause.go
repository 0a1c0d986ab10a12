package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// pauses emits what a thread does while it polls.
func pauses() {
	text("pause", "func(n int)")
	contract("pause passes the time of n PAUSE instructions, n positive: the core's other thread has its units, and the end of polling costs no pipeline flush.")
	n := param("n")
	Label("loop")
	PAUSE()
	DECQ(n)
	JNE(LabelRef("loop"))
	RET()
}
