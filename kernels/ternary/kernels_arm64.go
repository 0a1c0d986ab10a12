//go:build arm64 && !purego

package ternary

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// kernels: without FEAT_DotProd only lookups are fast.
var kernels = func() []*kernel {
	list := []*kernel{genericKernel}
	if cpu.HasDotProd {
		list = append(list, sdotKernel)
	}
	if cpu.HasDotProd && cpu.HasI8MM {
		list = append(list, i8mmKernel)
	}
	return append(list, lutKernel)
}()

// rules go by counts of instructions, not by measurement: SDOT makes 16 products an
// instruction, a lookup 8·g for a load and an add but always for 8 tokens, which is
// still fewer instructions than the portable kernel's. With what unpacks and arranges,
// SDOT makes 10 (I1) and 11 (I2) products an instruction, SMMLA 12 and 14.
var rules = func() (list []rule) {
	if !cpu.HasDotProd {
		return []rule{{cpu.NEON, matrix.I1, 1, lutKernel}, {cpu.NEON, matrix.I2, 1, lutKernel}}
	}
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		list = append(list, rule{cpu.NEON, p, 1, sdotKernel})
		if cpu.HasI8MM {
			list = append(list, rule{cpu.NEON, p, 4, i8mmKernel})
		}
	}
	return append(list, rule{cpu.NEON, matrix.I1, 8, lutKernel}, rule{cpu.NEON, matrix.I2, 16, lutKernel})
}()
