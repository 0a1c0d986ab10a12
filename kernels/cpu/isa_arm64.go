//go:build arm64 && !purego

package cpu

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// features lists the features that kernels need beyond the base of arm64.
type features struct {
	asimd   bool
	dotProd bool // FEAT_DotProd: SDOT
	i8mm    bool // FEAT_I8MM: SMMLA
}

var here = completed(features{cpu.ARM64.HasASIMD, cpu.ARM64.HasASIMDDP, cpu.ARM64.HasI8MM}, runtime.GOOS, processorFeature)

func Has(i ISA) bool { return i == NEON && here.asimd }

// HasDotProd reports whether SDOT may be used.
var HasDotProd = here.dotProd

// HasI8MM reports whether SMMLA may be used.
var HasI8MM = here.i8mm

// pfI8MM is PF_ARM_V82_I8MM_INSTRUCTIONS_AVAILABLE of winnt.h.
const pfI8MM = 66

// completed adds to f, which x/sys/cpu found, features that it does not look for. Windows reports SMMLA by
// present, and macOS 11 has no word for SDOT, which every Mac with arm64 has. f comes from HWCAP on Linux
// and Android and from sysctl on Apple's systems. Elsewhere it is empty, so only the base is used.
func completed(f features, goos string, present func(id uint32) bool) features {
	switch goos {
	case "windows":
		f.i8mm = f.i8mm || present(pfI8MM)
	case "darwin":
		f.dotProd = true
	}
	f.i8mm = f.i8mm && f.dotProd // kernels with SMMLA leave odd tokens to SDOT
	return f
}
