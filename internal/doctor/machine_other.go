//go:build !linux && !darwin

package doctor

import "github.com/klauspost/cpuid/v2"

func processor() string { return cpuid.CPU.BrandName }

// affinity is not asked for: runtime.NumCPU knows it there.
func affinity() int { return 0 }
