//go:build arm64 && !purego

package ternary

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// i8mmKernel is sdotKernel with SMMLA for tiles of 4 tokens: 32 products an
// instruction, for two more instructions a vector of weights.
var i8mmKernel = &kernel{
	name:      "neon:i8mm",
	isa:       cpu.NEON,
	form:      func(matrix.Packing, int) (actForm, int) { return formQuads, 4 },
	strips:    16,
	perThread: 8,
	mul: func(m *Task, r *segmentRun, s *scratch, strips, tokens extent) {
		mulQuads(m, r, s, strips, tokens, i8mmKernels[m.l.g])
	},
}

// i8mmKernels sum tiles of 4 tokens.
var i8mmKernels = map[int]quadFunc{5: {i8mmI1x4, 8}, 4: {i8mmI2x4, 16}}
