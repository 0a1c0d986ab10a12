package cli

import (
	"fmt"
	"os"
	goruntime "runtime"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// mostThreads is the most compute threads that can be asked for. More than the
// processors never help, but a configuration may come from a larger machine.
func mostThreads() int { return max(64, 4*goruntime.NumCPU()) }

// checkThreads tells what is wrong with a number of threads.
func checkThreads(n int) error {
	if n < 0 || n > mostThreads() {
		return fmt.Errorf("threads: %d is outside 0..%d on this machine; 0 means one a physical core", n, mostThreads())
	}
	return nil
}

// newPool makes the pool that models compute on; threads 0: as many as it
// chooses. Its workers poll during steps and so keep their Ps: one more is for
// whatever else there is to do, which then waits for no step, and shares the
// processors as the operating system sees fit. Whoever sets GOMAXPROCS has decided
// otherwise.
func newPool(threads int) (*pool.Pool, error) {
	if err := checkThreads(threads); err != nil {
		return nil, usage.Errorf("--%w", err)
	}
	if threads == 0 {
		threads = cpu.Cores()
	}
	if os.Getenv("GOMAXPROCS") == "" {
		goruntime.GOMAXPROCS(max(goruntime.GOMAXPROCS(0), threads+1))
	}
	return pool.New(threads), nil
}
