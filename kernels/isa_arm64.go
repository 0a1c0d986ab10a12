//go:build arm64 && !purego

package kernels

import "golang.org/x/sys/cpu"

func hasISA(i ISA) bool { return i == NEON && cpu.ARM64.HasASIMD }

// hasDotProd tells whether SDOT may be used.
var hasDotProd = cpu.ARM64.HasASIMDDP
