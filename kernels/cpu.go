package kernels

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// CPU is the Backend that runs every packing on the processor's cores with the
// kernels of ActiveISA. It is safe for concurrent use; Muls that share its
// pool run one after another.
type CPU struct {
	pool         *pool.Pool
	ternary      []ternaryScratch       // one a worker; what a worker holds, nobody else touches
	bands        []bandScratch          // likewise
	ternaryOnly  *ternaryKernel         // the one kernel to use; nil: what the rules say
	ternaryRules []ternaryRule          // which kernel multiplies how many tokens
	last         atomic.Pointer[stream] // the weights that one token was multiplied with last
	ternaryOnce  sync.Once              // makes the scratch and finds the rules at the first ternary Load
}

// NewCPU makes a backend over pool. The pool stays the caller's to close.
func NewCPU(pool *pool.Pool) *CPU {
	return &CPU{pool: pool, ternary: make([]ternaryScratch, pool.Threads()), bands: newBandScratch(pool.Threads()), ternaryOnly: overrideTernary}
}

// Name is "cpu/" and the instruction set in use, e.g. "cpu/avx2".
func (c *CPU) Name() string { return "cpu/" + cpu.Active().String() }

// Pool is the pool the backend's products run on.
func (c *CPU) Pool() *pool.Pool { return c.pool }

// Load prepares w; it keeps w.Data and copies only small parts. It reports
// ErrShape for a matrix whose parts do not fit together, and ErrUnsupported
// for a packing this package does not know.
func (c *CPU) Load(w *Matrix) (Linear, error) {
	if w.Rows < 1 || w.Cols < 1 {
		return nil, fmt.Errorf("%w: a matrix of %d x %d", ErrShape, w.Rows, w.Cols)
	}
	switch w.Packing {
	case I1, I2:
		return newTernary(c, w)
	}
	if w.Packing.dense() || w.Packing.grouped() {
		return newBandLinear(c, w)
	}
	return nil, fmt.Errorf("%w: %v", ErrUnsupported, w.Packing)
}

// Err is nil: a processor that computes wrongly cannot say so.
func (c *CPU) Err() error { return nil }

// Close does nothing; the pool belongs to the caller.
func (c *CPU) Close() error { return nil }
