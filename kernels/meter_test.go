package kernels

import (
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

func TestAMeterCountsProductsOnceEnabled(t *testing.T) {
	pool := pool.New(2)
	defer pool.Close()
	m := pool.Meter()
	multiply := func(p matrix.Packing, rows, cols, n int) {
		l := mustLinear(t, pool, arbitraryMatrix(t, p, rows, cols))
		var acts Acts
		acts.Set(make([]float32, n*cols), n, cols)
		l.Mul(make([]float32, n*rows), &acts)
	}
	multiply(matrix.I2, 64, 256, 2)
	if m.Busy() != 0 || m.Costs()[meter.Ternary].Calls != 0 {
		t.Errorf("a meter that is off counted %+v", m.Costs())
	}
	m.Enable()
	multiply(matrix.I2, 640, 256, 3)
	multiply(matrix.I2, 640, 256, 1)
	multiply(matrix.Q8, 32, 256, 1)
	multiply(matrix.F16, 16, 256, 2)
	for k, want := range map[meter.Kind]meter.Cost{
		meter.Ternary:   {Calls: 2, MACs: 4 * 640 * 256, Bytes: 2 * 640 * 256 / 4},
		meter.Grouped:   {Calls: 1, MACs: 32 * 256, Bytes: 32 * 256 * 34 / 32},
		meter.Dense:     {Calls: 1, MACs: 2 * 16 * 256, Bytes: 16 * 256 * 2},
		meter.Attention: {},
	} {
		got := m.Costs()[k]
		if (got.Time > 0) != (want.Calls > 0) {
			t.Errorf("%v took %v", k, got.Time)
		}
		want.Kind, want.Time, want.Idle = k, got.Time, got.Idle // lanes are idle or not by the kernel that the machine has
		if got != want {
			t.Errorf("cost %+v, want %+v", got, want)
		}
	}
	if m.Busy() <= 0 {
		t.Errorf("workers were busy for %v", m.Busy())
	}
}

func arbitraryMatrix(t *testing.T, p matrix.Packing, rows, cols int) *matrix.Matrix {
	r := rand.New(rand.NewPCG(1, 1))
	if p.Ternary() {
		return ternary.Arbitrary(rows, cols, p, r)
	}
	return matrices.Random(t, r, p, rows, cols)
}
