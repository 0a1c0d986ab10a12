package kernels

import (
	"fmt"

	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/dense"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

// CPU is the Backend that runs every packing on the processor's cores with the
// kernels of the instruction set in use. It is safe for concurrent use; Muls that
// share its pool run one after another.
type CPU struct {
	pool    *pool.Pool
	ternary *ternary.Runner
	bands   *bands.Runner
}

// NewCPU makes a backend over pool. The pool stays the caller's to close.
func NewCPU(pool *pool.Pool) *CPU {
	order := new(stream.Order) // of all matrices
	return &CPU{pool: pool, ternary: ternary.NewRunner(pool, order), bands: bands.NewRunner(pool, order)}
}

// UseTernary has one kernel, of those that ternary.Implementations lists, multiply
// all ternary matrices. It must be called before the first Load.
func (c *CPU) UseTernary(name string) error { return c.ternary.Use(name) }

// Name returns "cpu/" and the instruction set in use, e.g. "cpu/avx2".
func (c *CPU) Name() string { return "cpu/" + cpu.Active().String() }

// Pool returns the pool the backend's products run on.
func (c *CPU) Pool() *pool.Pool { return c.pool }

// Load prepares w; it keeps w.Data and copies only small parts. It reports
// ErrShape for a matrix whose parts do not fit together, and ErrUnsupported
// for a packing this package does not know.
func (c *CPU) Load(w *matrix.Matrix) (Linear, error) {
	if w.Rows < 1 || w.Cols < 1 {
		return nil, fmt.Errorf("%w: a matrix of %d x %d", matrix.ErrShape, w.Rows, w.Cols)
	}
	if !w.Packing.Valid() {
		return nil, fmt.Errorf("%w: %v", matrix.ErrUnsupported, w.Packing)
	}
	if w.Offsets != nil && (w.Packing.Kind() != meter.Grouped || w.Offsets.Packing != matrix.F32) {
		return nil, fmt.Errorf("%w: %v with offsets in %v", matrix.ErrUnsupported, w.Packing, w.Offsets.Packing)
	}
	if w.Packing.Ternary() {
		l, err := c.ternary.Load(w)
		if err != nil {
			return nil, err
		}
		return ternaryProduct{l}, nil
	}
	kernel := dense.NewKernel
	if w.Packing.Kind() == meter.Grouped {
		kernel = grouped.NewKernel
	}
	var offsets bands.Kernel
	if w.Offsets != nil {
		offsets = dense.NewKernel(w.Offsets)
	}
	l, err := c.bands.Load(w, kernel(w), offsets)
	if err != nil {
		return nil, err
	}
	return bandProduct{l}, nil
}

// Err returns nil: a processor that computes wrongly cannot say so.
func (c *CPU) Err() error { return nil }

// Close does nothing; the pool belongs to the caller.
func (c *CPU) Close() error { return nil }

// ternaryProduct and bandProduct are Linears. The state of a product under way is
// in the Acts, so Mul allocates nothing.
type (
	ternaryProduct struct{ l *ternary.Linear }
	bandProduct    struct{ l *bands.Linear }
)

func (p ternaryProduct) Mul(y []float32, x *Acts) { p.l.Mul(y, &x.Rows, &x.ternary) }
func (p bandProduct) Mul(y []float32, x *Acts)    { p.l.Mul(y, &x.Rows, &x.bands) }
