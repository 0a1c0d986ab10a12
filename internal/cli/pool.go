package cli

import (
	"os"
	goruntime "runtime"

	"github.com/lutra-lm/lutra/kernels"
)

// newPool makes the pool that models compute on; threads < 1: as many as it
// chooses. Its workers poll during steps and so keep their Ps: one more is for
// whatever else there is to do, which then waits for no step, and shares the
// processors as the operating system sees fit. Whoever sets GOMAXPROCS has decided
// otherwise.
func newPool(threads int) *kernels.Pool {
	if threads < 1 {
		threads = kernels.Cores()
	}
	if os.Getenv("GOMAXPROCS") == "" {
		goruntime.GOMAXPROCS(max(goruntime.GOMAXPROCS(0), threads+1))
	}
	return kernels.NewPool(threads)
}
