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

// rules go by llvm-mca's counts (docs/data/arm64-sdot.csv), not by measurement. Panels, by
// SMMLA or by SDOT, lead from some tokens on; lookups where there is neither.
var rules = func() (list []rule) {
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		switch {
		case !cpu.HasDotProd:
			list = append(list, rule{cpu.NEON, p, 1, lutKernel})
		case cpu.HasI8MM:
			list = append(list, rule{cpu.NEON, p, 1, sdotKernel}, rule{cpu.NEON, p, 4, i8mmKernel})
		default:
			list = append(list, rule{cpu.NEON, p, 1, sdotKernel})
		}
	}
	return list
}()
