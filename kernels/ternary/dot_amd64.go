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

var dotAVXVNNI = madKernels{
	one: [2]madStream{dot4x1AVXVNNI, dot5x1AVXVNNI},
	tiles: [2][]madFunc{
		{2: dot4x2AVXVNNI, 3: dot4x3AVXVNNI, 4: dot4x4AVXVNNI, 5: dot4x5AVXVNNI, 6: dot4x6AVXVNNI, 7: dot4x7AVXVNNI},
		{2: dot5x2AVXVNNI, 3: dot5x3AVXVNNI, 4: dot5x4AVXVNNI, 5: dot5x5AVXVNNI, 6: dot5x6AVXVNNI, 7: dot5x7AVXVNNI, 8: dot5x8AVXVNNI},
	},
}

// dotWidth returns the width of tiles for n tokens. Eight of I2 are five and three,
// for two tiles of four wait longer (_gen/ternary/dot.go counts the cycles).
func dotWidth(p matrix.Packing, n int) int {
	if p == matrix.I2 && n == 8 {
		return 5
	}
	return cpu.TileWidth(n, len(dotAVXVNNI.tiles[tritsPerByte(p)-4])-1)
}
