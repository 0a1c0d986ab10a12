//go:build arm64 && !purego

package cpu

import "golang.org/x/sys/cpu"

func Has(i ISA) bool { return i == NEON && cpu.ARM64.HasASIMD }

// HasDotProd reports whether SDOT may be used.
var HasDotProd = cpu.ARM64.HasASIMDDP

// HasI8MM reports whether SMMLA may be used.
var HasI8MM = cpu.ARM64.HasI8MM
