//go:build arm64 && !purego

package ternary

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// kernels: without FEAT_DotProd only lookups are fast.
var kernels = func() []*kernel {
	if cpu.HasDotProd {
		return []*kernel{genericKernel, sdotKernel, lutKernel}
	}
	return []*kernel{genericKernel, lutKernel}
}()

// rules go by counts of instructions, not by measurement: SDOT makes 16
// products an instruction, a lookup 8·g for a load and an add but always for 8
// tokens, which is still fewer instructions than the portable kernel's.
var rules = func() []rule {
	if cpu.HasDotProd {
		return []rule{{cpu.NEON, matrix.I1, 1, sdotKernel}, {cpu.NEON, matrix.I1, 8, lutKernel}, {cpu.NEON, matrix.I2, 1, sdotKernel}, {cpu.NEON, matrix.I2, 16, lutKernel}}
	}
	return []rule{{cpu.NEON, matrix.I1, 1, lutKernel}, {cpu.NEON, matrix.I2, 1, lutKernel}}
}()
