//go:build amd64 && !purego

package choice

import (
	"sync"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// canEvict reports whether the processor has CLFLUSHOPT, as all with AVX-512 do.
var canEvict = sync.OnceValue(func() bool { return cpu.Has(cpu.AVX2) && features()&(1<<23) != 0 })

// Evict has the next product read the weights from memory. Without CLFLUSHOPT it leaves them where they
// are: CLFLUSH takes as long as ten products.
func Evict(weights []byte) {
	if lines := len(weights) / cpu.CacheLine; lines > 0 && canEvict() {
		evictLines(&weights[0], lines)
	}
}
