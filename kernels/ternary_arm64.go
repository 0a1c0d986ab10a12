//go:build arm64 && !purego

package kernels

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// ternaryKernels: without FEAT_DotProd only lookups are fast.
var ternaryKernels = func() []*ternaryKernel {
	if cpu.HasDotProd {
		return []*ternaryKernel{genericTernary, sdotTernary, neonLUT}
	}
	return []*ternaryKernel{genericTernary, neonLUT}
}()

// ternaryRules go by counts of instructions, not by measurement: SDOT makes 16
// products an instruction, a lookup 8·g for a load and an add but always for 8
// tokens, which is still fewer instructions than the portable kernel's.
var ternaryRules = func() []ternaryRule {
	if cpu.HasDotProd {
		return []ternaryRule{{cpu.NEON, matrix.I1, 1, sdotTernary}, {cpu.NEON, matrix.I1, 8, neonLUT}, {cpu.NEON, matrix.I2, 1, sdotTernary}, {cpu.NEON, matrix.I2, 16, neonLUT}}
	}
	return []ternaryRule{{cpu.NEON, matrix.I1, 1, neonLUT}, {cpu.NEON, matrix.I2, 1, neonLUT}}
}()
