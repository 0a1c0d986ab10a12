//go:build amd64 && !purego

package kernels

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

var ternaryKernels = []*ternaryKernel{genericTernary, madTernary, lutTernary, dotTernary, vnniTernary, hybridTernary}

// ternaryRules: the first tokens at which each kernel was measured to lead. For
// AVX512 that was on a Zen 5, before this code (docs/adr/0008-hybrid.md).
var ternaryRules = []ternaryRule{
	{cpu.AVX2, matrix.I1, 1, madTernary},
	{cpu.AVX2, matrix.I1, 9, lutTernary},
	{cpu.AVX2, matrix.I2, 1, madTernary},
	{cpu.AVX2, matrix.I2, 12, lutTernary},
	{cpu.AVXVNNI, matrix.I1, 1, dotTernary},
	{cpu.AVXVNNI, matrix.I1, 10, lutTernary},
	{cpu.AVXVNNI, matrix.I2, 1, dotTernary},
	{cpu.AVXVNNI, matrix.I2, 13, lutTernary},
	{cpu.AVX512, matrix.I1, 1, vnniTernary},
	{cpu.AVX512, matrix.I1, 64, hybridTernary},
	{cpu.AVX512, matrix.I2, 1, vnniTernary},
	{cpu.AVX512, matrix.I2, 64, hybridTernary},
}
