package engines

import (
	"os"
	"runtime"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// NewPool makes the pool that models compute on; threads 0: as many as it
// chooses. Its workers poll during steps and so keep their Ps: one more is for
// whatever else there is to do, which then waits for no step, and shares the
// processors as the operating system sees fit. Whoever sets GOMAXPROCS has decided
// otherwise.
func NewPool(threads int) (*pool.Pool, error) {
	if err := config.CheckThreads(threads); err != nil {
		return nil, usage.Errorf("--%w", err)
	}
	if threads == 0 {
		threads = cpu.Cores()
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), threads+1))
	}
	return pool.New(threads), nil
}
