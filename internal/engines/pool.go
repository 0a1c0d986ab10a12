package engines

import (
	"os"
	"runtime"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// NewPool makes the pool that models compute on; threads 0 means one a physical core. Its workers poll
// during steps and keep their Ps, so GOMAXPROCS is set to one more than the threads. Other goroutines
// then never wait for a step, and the operating system shares out the processors. GOMAXPROCS in the
// environment takes precedence.
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
