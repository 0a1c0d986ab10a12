package kernels

import (
	"testing"

	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
)

func TestAMeterCountsProductsOnceEnabled(t *testing.T) {
	pool := pool.New(2)
	defer pool.Close()
	cpu, m := NewCPU(pool), pool.Meter()
	multiply := func(p matrix.Packing, rows, cols, n int) {
		stack, err := benchStack(rows, cols, p, 1)
		if err != nil {
			t.Fatal(err)
		}
		l, err := cpu.Load(stack[0])
		if err != nil {
			t.Fatal(err)
		}
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
		want.Kind, want.Time = k, got.Time
		if got != want {
			t.Errorf("cost %+v, want %+v", got, want)
		}
	}
	if m.Busy() <= 0 {
		t.Errorf("workers were busy for %v", m.Busy())
	}
}

func TestIdleLanesAreThoseThatLookupTilesLack(t *testing.T) {
	for _, c := range []struct {
		form        actForm
		n, width, w int
	}{
		{formLanes, 1, 16, 15}, {formLanes, 16, 16, 0}, {formLanes, 33, 16, 15}, {formLanes, 33, 32, 31},
		{formTiles, 5, 8, 0}, {formQuads, 3, 4, 0}, {formRows, 7, 1, 0},
	} {
		r := ternaryRun{segment: segment{lo: 64, hi: 64 + c.n}, form: c.form, width: c.width}
		if got := r.idle(); got != c.w {
			t.Errorf("%d tokens in tiles of %d, form %d: %d lanes are idle, want %d", c.n, c.width, c.form, got, c.w)
		}
	}
}
