package ternary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

const canary = float32(-12345.678)

// input is rows with the product that is under way.
type input struct {
	acts.Rows
	task Task
}

// testCase is a product with its answer, worked out trit by trit.
type testCase struct {
	w    *matrix.Matrix
	x    []float32
	n    int
	want []float32
}

func newCase(t testing.TB, p matrix.Packing, rows, cols, n int, trits []int8, x, scale []float32) *testCase {
	t.Helper()
	w, err := Pack(rows, cols, trits, scale, p)
	if err != nil {
		t.Fatal(err)
	}
	c := &testCase{w: w, x: x, n: n, want: make([]float32, n*rows)}
	q := make([]int8, cols)
	for i := range n {
		s, _ := acts.QuantizeRow(q, x[i*cols:(i+1)*cols])
		for r := range rows {
			sum := int32(0)
			for k, v := range trits[r*cols : (r+1)*cols] {
				sum += int32(v) * int32(q[k])
			}
			c.want[i*rows+r] = float32(sum) * (s * scale[min(r, len(scale)-1)])
		}
	}
	return c
}

// first is the case of its first n tokens.
func (c *testCase) first(n int) *testCase {
	return &testCase{c.w, c.x[:n*c.w.Cols], n, c.want[:n*c.w.Rows]}
}

// run multiplies into a buffer with canaries on both sides and compares bits.
func (c *testCase) run(t *testing.T, run *Runner, in *input) {
	t.Helper()
	l, err := run.Load(c.w)
	if err != nil {
		t.Fatal(err)
	}
	const guard = 80
	buf := make([]float32, len(c.want)+2*guard)
	for i := range buf {
		buf[i] = canary
	}
	y := buf[guard : guard+len(c.want)]
	in.Set(c.x, c.n, c.w.Cols)
	l.Mul(y, &in.Rows, &in.task)
	for i, v := range c.want {
		if math.Float32bits(y[i]) != math.Float32bits(v) && (v == v || y[i] == y[i]) {
			t.Fatalf("token %d, row %d = %v, want %v", i/c.w.Rows, i%c.w.Rows, y[i], v)
		}
	}
	for i := range guard {
		if buf[i] != canary || buf[guard+len(c.want)+i] != canary {
			t.Fatalf("wrote outside of y")
		}
	}
}

// eachKernel runs f with a backend for every implementation this machine has, and fails
// where LUTRA_REQUIRE names an instruction set that none of them uses.
func eachKernel(t *testing.T, f func(t *testing.T, run *Runner)) {
	pool := pool.New(2)
	defer pool.Close()
	required := os.Getenv("LUTRA_REQUIRE")
	reached := required == ""
	for _, k := range kernels {
		if k.isa != cpu.Generic && !cpu.Has(k.isa) {
			continue
		}
		reached = reached || k.isa.String() == required
		t.Run(k.name, func(t *testing.T) {
			run := NewRunner(pool, new(stream.Order))
			run.only = k
			f(t, run)
		})
	}
	if !reached {
		t.Errorf("LUTRA_REQUIRE=%s: no such kernel ran here (have %v)", required, Implementations())
	}
}

func TestTernaryMatchesGeneric(t *testing.T) {
	shapes := [][2]int{{1, 1}, {63, 19}, {64, 20}, {65, 16}, {64, 33}, {61, 241}, {128, 257}, {193, 521}, {5, 1601}}
	tokens := []int{1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 64, 130}
	budget := 1 << 23 // products worked out trit by trit: emulated machines are slow
	if !testing.Short() {
		budget = sweep.Of(t, 1<<22, 1<<24)
		shapes = append(shapes, [][2]int{{2048, 64}, {64, 4096}, {320, 2560}, {131, 6912}}...)
		tokens = append(tokens, 6, 10, 11, 12, 14, 23, 47, 48, 63, 65, 96, 127, 128)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var cases []*testCase
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		for i, s := range shapes {
			rows, cols := s[0], s[1]
			most := min(slices.Max(tokens), 1+budget/(rows*cols))
			scale := kerneltest.RandomVector(rng, []int{1, rows}[i%2])
			cases = append(cases, newCase(t, p, rows, cols, most, kerneltest.RandomTrits(rng, rows*cols), kerneltest.RandomVector(rng, most*cols), scale))
		}
	}
	eachKernel(t, func(t *testing.T, run *Runner) {
		var in input
		for _, c := range cases {
			for _, n := range tokens {
				if n <= c.n {
					t.Run(fmt.Sprintf("%v/%dx%d/N=%d", c.w.Packing, c.w.Rows, c.w.Cols, n), func(t *testing.T) { c.first(n).run(t, run, &in) })
				}
			}
		}
	})
}

// The sums of int16 kernels are largest when every product has one sign.
func TestTernaryMatchesGenericAtTheEndsOfItsRange(t *testing.T) {
	const rows, cols, most = 64, 276, 64 // int16 sums are emptied when full and once more at the end
	var cases []*testCase
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		for _, w := range []int8{-1, 0, 1} {
			for _, a := range []float32{-127, 127} {
				trits, x := make([]int8, rows*cols), make([]float32, most*cols)
				for i := range trits {
					trits[i] = w
				}
				for i := range x {
					x[i] = a
				}
				cases = append(cases, newCase(t, p, rows, cols, most, trits, x, []float32{1}))
			}
		}
	}
	eachKernel(t, func(t *testing.T, run *Runner) {
		var in input
		for _, c := range cases {
			for _, n := range []int{1, 4, 8, 16, 21, most} {
				c.first(n).run(t, run, &in)
			}
		}
	})
}

func TestATokenWithNaNSpoilsNoOther(t *testing.T) {
	eachKernel(t, func(t *testing.T, run *Runner) {
		rng := rand.New(rand.NewPCG(5, 6))
		const rows, cols, n = 70, 90, 67
		x := kerneltest.RandomVector(rng, n*cols)
		x[3*cols+7] = float32(math.NaN())
		x[17*cols+80] = float32(math.Inf(-1))
		x[40*cols] = float32(math.NaN())
		c := newCase(t, matrix.I2, rows, cols, n, kerneltest.RandomTrits(rng, rows*cols), x, []float32{0.5})
		if v := c.want[3*rows]; v == v {
			t.Fatalf("a row with NaN gave %v", v)
		}
		c.run(t, run, new(input))
	})
}

// The batch around a token, the threads and the kernels the rules choose never
// change its products.
func TestTernaryRowsDoNotDependOnTheirBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	rows, cols, most := 200, 300, 96
	if testing.Short() { // emulated machines
		rows, cols, most = 130, 100, 66
	}
	trits, x := kerneltest.RandomTrits(rng, rows*cols), kerneltest.RandomVector(rng, most*cols)
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		c := newCase(t, p, rows, cols, most, trits, x, []float32{0.25})
		for _, threads := range []int{1, 3} {
			pool := pool.New(threads)
			run := NewRunner(pool, new(stream.Order))
			var in input
			for n := 1; n <= most; n += 1 + n/24 {
				c.first(n).run(t, run, &in)
			}
			pool.Close()
		}
	}
}

func TestMatricesShareTheActivationsTheyRead(t *testing.T) {
	eachKernel(t, func(t *testing.T, run *Runner) {
		rng := rand.New(rand.NewPCG(9, 10))
		const cols, n = 150, 20
		x := kerneltest.RandomVector(rng, n*cols)
		var in input
		in.Set(x, n, cols)
		for i, p := range []matrix.Packing{matrix.I1, matrix.I2, matrix.I1, matrix.I2} {
			rows := 60 + 10*i
			c := newCase(t, p, rows, cols, n, kerneltest.RandomTrits(rng, rows*cols), x, []float32{1})
			l, err := run.Load(c.w)
			if err != nil {
				t.Fatal(err)
			}
			y := make([]float32, n*rows)
			l.Mul(y, &in.Rows, &in.task)
			for j := range y {
				if y[j] != c.want[j] {
					t.Fatalf("matrix %d: y[%d] = %v, want %v", i, j, y[j], c.want[j])
				}
			}
		}
	})
}

func TestMulAllocatesNothing(t *testing.T) {
	sweep.NoEmulator(t)
	eachKernel(t, func(t *testing.T, run *Runner) {
		rng := rand.New(rand.NewPCG(11, 12))
		const rows, cols = 128, 640
		w, err := Pack(rows, cols, kerneltest.RandomTrits(rng, rows*cols), []float32{1}, matrix.I1)
		if err != nil {
			t.Fatal(err)
		}
		l, err := run.Load(w)
		if err != nil {
			t.Fatal(err)
		}
		const most = 70
		x, y := kerneltest.RandomVector(rng, most*cols), make([]float32, most*rows)
		var in input
		in.Set(x, most, cols)
		l.Mul(y, &in.Rows, &in.task)
		for _, n := range []int{1, 4, 17, most} {
			if a := testing.AllocsPerRun(10, func() {
				in.Set(x, n, cols)
				l.Mul(y, &in.Rows, &in.task)
			}); a != 0 {
				t.Errorf("N=%d: Mul allocates %v times", n, a)
			}
		}
	})
}
