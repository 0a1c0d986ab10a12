package bands_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/dense"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

// colsOf are column counts a packing can have: the least, odd ones, real ones.
func colsOf(p matrix.Packing) []int {
	switch {
	case p.Kind() != meter.Grouped:
		return []int{1, 2, 3, 7, 64, 255, 257, 576}
	case grouped.UnitCols(p) == acts.GroupCols:
		if p == matrix.NVFP4 {
			return []int{64, 192, 576, 2048 + 64}
		}
		return []int{32, 96, 288, 2048 + 64}
	}
	return []int{256, 768, 2048 + 256}
}

// effective gives row i of x as the products see it: float32, or int8 groups.
func effective(x *input, p matrix.Packing, i int) []float64 {
	v := make([]float64, x.K())
	for k, f := range x.Row(i) {
		v[k] = float64(f)
	}
	if p.Kind() != meter.Grouped {
		return v
	}
	for lo := 0; lo < x.K(); lo += acts.GroupCols {
		var rec [acts.RecordBytes]byte
		acts.QuantizeGroup(&rec, x.Row(i)[lo:min(lo+acts.GroupCols, x.K())], grouped.Limit(p))
		d := float64(math.Float32frombits(binary.LittleEndian.Uint32(rec[32:])))
		for k := lo; k < min(lo+acts.GroupCols, x.K()); k++ {
			v[k] = d * float64(int8(rec[k-lo]))
		}
	}
	return v
}

// input is rows with the product that is under way.
type input struct {
	acts.Rows
	task bands.Task
}

func load(tb testing.TB, p *pool.Pool, m *matrix.Matrix) *bands.Linear {
	tb.Helper()
	kernel := dense.NewKernel
	if m.Packing.Kind() == meter.Grouped {
		kernel = grouped.NewKernel
	}
	l, err := bands.NewRunner(p, new(stream.Order)).Load(m, kernel(m), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// The bound is on |y - exact| relative to Σ|w·x|: a chain of 256 float32
// roundings, or of K/32 on top of the two of every group.
const productBound = 2e-6

func TestProductsAreTheFloat64OnesWithinTheBoundAtAllSizes(t *testing.T) {
	pool := pool.New(2)
	defer pool.Close()
	kerneltest.OnEachISA(t, func(t *testing.T) {
		for _, p := range matrices.Banded {
			t.Run(p.String(), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, uint64(p)))
				for i, cols := range colsOf(p) {
					rows := []int{1, 15, 16, 17, 67, 131, 64, 33}[i]
					m := matrices.Random(t, r, p, rows, cols)
					l := load(t, pool, m)
					sizes := []int{1, 2, 3, 4, 5, 9, 23, 35}
					if cpu.Active() == cpu.Generic && (testing.Short() || sweep.Quick()) {
						sizes = []int{1, 3, 9} // one loop for all
					}
					for _, n := range sizes {
						checkProduct(t, r, l, m, n)
					}
				}
			})
		}
	})
}

func checkProduct(t *testing.T, r *rand.Rand, l *bands.Linear, m *matrix.Matrix, n int) {
	t.Helper()
	var x input
	x.Set(kerneltest.RandomVector(r, n*m.Cols), n, m.Cols)
	buf := make([]float32, n*m.Rows+32)
	for i := range buf {
		buf[i] = kerneltest.Canary
	}
	y := buf[16 : 16+n*m.Rows]
	l.Mul(y, &x.Rows, &x.task)
	for i := range 16 {
		if buf[i] != kerneltest.Canary || buf[len(buf)-1-i] != kerneltest.Canary {
			t.Fatalf("%dx%d, n=%d: wrote outside y", m.Rows, m.Cols, n)
		}
	}
	seen := make([][]float64, n)
	for i := range seen {
		seen[i] = effective(&x, m.Packing, i)
	}
	w := make([]float32, m.Cols)
	for row := range m.Rows {
		matrices.Row(w, m, row)
		for i := range n {
			var want, l1 float64
			for k, v := range seen[i] {
				want += v * float64(w[k])
				l1 += math.Abs(v * float64(w[k]))
			}
			if m.Packing == matrix.Q4M || m.Packing == matrix.Q41 {
				l1 *= 4 // weights are differences: what cancels in them rounds here
			}
			if got := float64(y[i*m.Rows+row]); !(math.Abs(got-want) <= productBound*l1+1e-30) {
				t.Fatalf("%dx%d, n=%d: y[%d][%d] = %v, want %v ± %g", m.Rows, m.Cols, n, i, row, got, want, productBound*l1)
			}
		}
	}
}

func TestARowsProductDoesNotDependOnBatchOrThreads(t *testing.T) {
	one, two := pool.New(1), pool.New(2)
	defer one.Close()
	defer two.Close()
	kerneltest.OnEachISA(t, func(t *testing.T) {
		for _, p := range matrices.Banded {
			r := rand.New(rand.NewPCG(2, uint64(p)))
			rows, cols, n := 133, 2048+256, 39
			if cpu.Active() == cpu.Generic {
				rows, n = 67, 19
				if testing.Short() || sweep.Quick() {
					rows, n = 35, 10
				}
			}
			m := matrices.Random(t, r, p, rows, cols)
			alone, together := load(t, one, m), load(t, two, m)
			x := kerneltest.RandomVector(r, n*cols)
			var batch, single input
			for size := 1; size <= n; size += 1 + size/4 {
				batch.Set(x, size, cols)
				y := make([]float32, size*rows)
				together.Mul(y, &batch.Rows, &batch.task)
				for i := 0; i < size; i += 1 + size/5 {
					single.Set(x[i*cols:], 1, cols)
					want := make([]float32, rows)
					alone.Mul(want, &single.Rows, &single.task)
					for j, v := range want {
						if math.Float32bits(y[i*rows+j]) != math.Float32bits(v) {
							t.Fatalf("%v: y[%d][%d] = %v among %d, %v alone", p, i, j, y[i*rows+j], size, v)
						}
					}
				}
			}
		}
	})
}

func TestBandProductsAllocateNothing(t *testing.T) {
	pool := pool.New(2)
	defer pool.Close()
	kerneltest.OnEachISA(t, func(t *testing.T) {
		for _, p := range matrices.Banded {
			m := matrices.Random(t, rand.New(rand.NewPCG(3, 3)), p, 70, 512)
			l := load(t, pool, m)
			x, y := make([]float32, 8*512), make([]float32, 8*70)
			var in input
			for _, tokens := range []int{8, 1} {
				in.Set(x, tokens, 512)
				l.Mul(y, &in.Rows, &in.task)
				if n := testing.AllocsPerRun(10, func() {
					in.Set(x, tokens, 512)
					l.Mul(y, &in.Rows, &in.task)
				}); n != 0 {
					t.Errorf("%v: %v allocations a product of %d tokens, want 0", p, n, tokens)
				}
			}
		}
	})
}

func TestPackersRefuseSizesThatDoNotFit(t *testing.T) {
	for name, f := range map[string]func() (*matrix.Matrix, error){
		"short F32":      func() (*matrix.Matrix, error) { return dense.PackF32(2, 3, make([]float32, 5)) },
		"long F16":       func() (*matrix.Matrix, error) { return dense.PackF16(2, 3, make([]byte, 13)) },
		"negative rows":  func() (*matrix.Matrix, error) { return dense.PackBF16(-1, 3, nil) },
		"no columns":     func() (*matrix.Matrix, error) { return dense.PackF16(3, 0, nil) },
		"part of block":  func() (*matrix.Matrix, error) { return grouped.PackQ4_0(1, 33, make([]byte, 18)) },
		"part of super":  func() (*matrix.Matrix, error) { return grouped.PackQ4_K(1, 128, make([]byte, 72)) },
		"short Q6_K":     func() (*matrix.Matrix, error) { return grouped.PackQ6_K(1, 256, make([]byte, 209)) },
		"overflow":       func() (*matrix.Matrix, error) { return grouped.PackQ8_0(math.MaxInt/32, 1<<20, nil) },
		"overflow, rows": func() (*matrix.Matrix, error) { return dense.PackF16(math.MaxInt, 2, nil) },
	} {
		if m, err := f(); err == nil {
			t.Errorf("%s: packed %dx%d, want an error", name, m.Rows, m.Cols)
		}
	}
}

// A token alone has the same bits as among others, wherever a matrix ends (in a tile, a band or a row),
// and for any number of workers and tiles.
func TestOneTokenHasTheBitsOfManyAtAllNumbersOfRows(t *testing.T) {
	sweep.Full(t)
	pool := pool.New(3)
	defer pool.Close()
	kerneltest.OnEachISA(t, func(t *testing.T) {
		const cols = 512
		most := 320
		if testing.Short() {
			most = 130 // an emulator takes its time to draw weights
		}
		r := rand.New(rand.NewPCG(5, 5))
		var alone, two input
		for _, p := range matrices.Grouped {
			for rows := 1; rows <= most; rows += 1 + rows/sweep.Cases(2, 7) {
				l := load(t, pool, matrices.Random(t, r, p, rows, cols))
				x := kerneltest.RandomVector(r, 2*cols)
				alone.Set(x, 1, cols)
				two.Set(x, 2, cols)
				got, want := make([]float32, rows), make([]float32, 2*rows)
				l.Mul(got, &alone.Rows, &alone.task)
				l.Mul(want, &two.Rows, &two.task)
				if !kerneltest.SameBits(got, want[:rows]) {
					t.Fatalf("%v, %d rows: one token has not the bits of two", p, rows)
				}
			}
		}
	})
}

func TestTokensBeyondATileHaveTheBitsTheyHaveAlone(t *testing.T) {
	pool := pool.New(2)
	defer pool.Close()
	kerneltest.OnEachISA(t, func(t *testing.T) {
		const rows, cols, n = 33, 256, bands.MostTileTokens + 3
		r := rand.New(rand.NewPCG(6, 6))
		x := kerneltest.RandomVector(r, n*cols)
		var batch, single input
		for _, p := range matrices.Banded {
			l := load(t, pool, matrices.Random(t, r, p, rows, cols))
			batch.Set(x, n, cols)
			got, want := make([]float32, n*rows), make([]float32, rows)
			l.Mul(got, &batch.Rows, &batch.task)
			for _, i := range []int{0, 63, 64, 67, n - 4, n - 1} {
				single.Set(x[i*cols:], 1, cols)
				l.Mul(want, &single.Rows, &single.task)
				if !kerneltest.SameBits(got[i*rows:][:rows], want) {
					t.Fatalf("%v: token %d of %d has not the bits it has alone", p, i, n)
				}
			}
		}
	})
}

func BenchmarkMul(b *testing.B) {
	pool := pool.New(0)
	defer pool.Close()
	const rows, cols = 2048, 2048
	for _, p := range matrices.Banded {
		l := load(b, pool, matrices.Random(b, rand.New(rand.NewPCG(4, 4)), p, rows, cols))
		for _, n := range []int{1, 4, 8, 16, 32, 128} {
			b.Run(fmt.Sprintf("%v/%v/%dx%d/N=%d", cpu.Active(), p, rows, cols, n), func(b *testing.B) {
				x, y := kerneltest.RandomVector(rand.New(rand.NewPCG(5, 5)), n*cols), make([]float32, n*rows)
				var in input
				for b.Loop() {
					in.Set(x, n, cols)
					l.Mul(y, &in.Rows, &in.task)
				}
				b.ReportMetric(float64(rows*cols*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
			})
		}
	}
}
