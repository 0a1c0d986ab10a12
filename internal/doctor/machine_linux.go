package doctor

import (
	"github.com/klauspost/cpuid/v2"
	"golang.org/x/sys/unix"
)

func processor() string { return cpuid.CPU.BrandName }

// affinity counts the logical processors that this process may run on.
func affinity() int {
	var mask unix.CPUSet
	if unix.SchedGetaffinity(0, &mask) != nil {
		return 0
	}
	return mask.Count()
}
