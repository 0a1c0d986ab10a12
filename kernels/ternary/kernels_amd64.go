//go:build amd64 && !purego

package ternary

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

var kernels = []*kernel{genericKernel, madKernel, lutKernel, dotKernel, vnniKernel, hybridKernel}

// rules: the first tokens at which each kernel was measured to lead. For
// AVX512 that was on a Zen 5, before this code (docs/adr/0008-hybrid.md).
var rules = []rule{
	{cpu.AVX2, matrix.I1, 1, madKernel},
	{cpu.AVX2, matrix.I1, 9, lutKernel},
	{cpu.AVX2, matrix.I2, 1, madKernel},
	{cpu.AVX2, matrix.I2, 12, lutKernel},
	{cpu.AVXVNNI, matrix.I1, 1, dotKernel},
	{cpu.AVXVNNI, matrix.I1, 10, lutKernel},
	{cpu.AVXVNNI, matrix.I2, 1, dotKernel},
	{cpu.AVXVNNI, matrix.I2, 13, lutKernel},
	{cpu.AVX512, matrix.I1, 1, vnniKernel},
	{cpu.AVX512, matrix.I1, 64, hybridKernel},
	{cpu.AVX512, matrix.I2, 1, vnniKernel},
	{cpu.AVX512, matrix.I2, 64, hybridKernel},
}
