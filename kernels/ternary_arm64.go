//go:build arm64 && !purego

package kernels

// ternaryKernels: without FEAT_DotProd only lookups are fast.
var ternaryKernels = func() []*ternaryKernel {
	if hasDotProd {
		return []*ternaryKernel{genericTernary, sdotTernary, neonLUT}
	}
	return []*ternaryKernel{genericTernary, neonLUT}
}()

// ternaryRules go by counts of instructions, not by measurement: SDOT makes 16
// products an instruction, a lookup 8·g for a load and an add but always for 8
// tokens, which is still fewer instructions than the portable kernel's.
var ternaryRules = func() []ternaryRule {
	if hasDotProd {
		return []ternaryRule{{NEON, I1, 1, sdotTernary}, {NEON, I1, 8, neonLUT}, {NEON, I2, 1, sdotTernary}, {NEON, I2, 16, neonLUT}}
	}
	return []ternaryRule{{NEON, I1, 1, neonLUT}, {NEON, I2, 1, neonLUT}}
}()
