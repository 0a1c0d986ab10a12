package cpu

import "github.com/klauspost/cpuid/v2"

// LastCache returns the size of the processor's last cache in bytes, which all cores share; zero where it is
// not known.
func LastCache() int { return max(0, cpuid.CPU.Cache.L3) }
