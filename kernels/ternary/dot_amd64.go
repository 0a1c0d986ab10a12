//go:build amd64 && !purego

package ternary

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// dotKernel multiplies digits with VPDPBUSD of 256 bits, for tiles of up to 8 tokens.
var dotKernel = &kernel{
	name:      "avxvnni:mad",
	isa:       cpu.AVXVNNI,
	form:      func(p matrix.Packing, n int) (actForm, int) { return formTiles, dotWidth(p, n) },
	strips:    16,
	perThread: 8,
	streams:   true,
	mul:       dotAVXVNNI.mul,
	one: func(m *Task, r *segmentRun, s *scratch, strip int, next uintptr) {
		dotAVXVNNI.strip(m, r, s, strip, 0, next)
	},
}

var dotAVXVNNI = madKernels{madStreams[cpu.AVXVNNI], madTiles[cpu.AVXVNNI]}

// dotWidth returns the width of tiles for n tokens. Eight of I2 are five and three,
// for two tiles of four wait longer (_gen/ternary/dot.go counts the cycles).
func dotWidth(p matrix.Packing, n int) int {
	switch {
	case n == 5, n == 7 && p == matrix.I1:
		return n
	case n == 8 && p == matrix.I2:
		return 5
	}
	return dotAVXVNNI.width(p, n)
}
