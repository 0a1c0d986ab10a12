//go:build amd64 && !purego

package ternary

import (
	"github.com/klauspost/cpuid/v2"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

var kernels = kernelsOf(cpu.HasGFNI, cpu.HasAMX)

// kernelsOf returns the kernels of a processor that has GFNI and AMX, or not.
func kernelsOf(gfni, amx bool) []*kernel {
	list := []*kernel{genericKernel, madKernel, lutKernel, dotKernel, vnniKernel, hybridKernel}
	if gfni {
		list = append(list, gfniKernel)
	}
	if amx {
		list = append(list, amxKernel)
	}
	return list
}

var rules = rulesOf(cpu.HasGFNI && cpuid.CPU.VendorID == cpuid.Intel, cpu.HasAMX)

// rulesOf returns the first tokens at which each kernel was measured to lead. For AVX512 that
// was on a Zen 5 (docs/data/kernels-ternary-b.csv), and with weights from memory on a Xeon, whose two ports of
// 512 bits multiply and unpack, as they do on all of Intel's processors (docs/data/kernels-chosen-c.csv). AMX leads
// on one as well (docs/data/kernels-chosen-f.csv).
func rulesOf(twoPorts, amx bool) []rule {
	list := []rule{
		{cpu.AVX2, matrix.I1, 1, madKernel},
		{cpu.AVX2, matrix.I1, 9, lutKernel},
		{cpu.AVX2, matrix.I2, 1, madKernel},
		{cpu.AVX2, matrix.I2, 12, lutKernel},
		{cpu.AVXVNNI, matrix.I1, 1, dotKernel},
		{cpu.AVXVNNI, matrix.I1, 10, lutKernel},
		{cpu.AVXVNNI, matrix.I2, 1, dotKernel},
		{cpu.AVXVNNI, matrix.I2, 13, lutKernel},
		{cpu.AVX512, matrix.I1, 1, vnniKernel},
		{cpu.AVX512, matrix.I2, 1, vnniKernel},
	}
	if !twoPorts {
		return append(list, rule{cpu.AVX512, matrix.I1, 64, hybridKernel}, rule{cpu.AVX512, matrix.I2, 64, hybridKernel})
	}
	list = append(list, rule{cpu.AVX512, matrix.I1, 4, gfniKernel}, rule{cpu.AVX512, matrix.I2, 1, gfniKernel})
	if amx {
		list = append(list, rule{cpu.AVX512, matrix.I1, 8, amxKernel}, rule{cpu.AVX512, matrix.I2, 8, amxKernel})
	}
	return list
}
