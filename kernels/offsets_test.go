package kernels

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// withOffsets packs random blocks of each format that has offsets.
func withOffsets(t *testing.T, r *rand.Rand, rows, cols int) map[string]*matrix.Matrix {
	t.Helper()
	list := map[string]*matrix.Matrix{}
	for name, f := range map[string]struct {
		pack        func(rows, cols int, raw []byte) (*matrix.Matrix, error)
		block, size int
		scales      [2]int
	}{
		"Q4_Z32": {zeros(32), 32, 19, [2]int{0, 0}}, "Q4_Z128": {zeros(128), 128, 67, [2]int{0, 0}}, "Q5_1": {grouped.PackQ5_1, 32, 24, [2]int{0, 2}},
		"Q5_K": {grouped.PackQ5_K, 256, 176, [2]int{0, 2}}, "Q2_K": {grouped.PackQ2_K, 256, 84, [2]int{80, 82}},
		"Q2_0C": {grouped.PackQ2_0C, 512, 130, [2]int{0, 0}},
	} {
		raw := make([]byte, rows*cols/f.block*f.size)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		for o := 0; o < len(raw); o += f.size {
			for _, at := range f.scales {
				binary.LittleEndian.PutUint16(raw[o+at:], vector.ToF16(float32(r.NormFloat64())*0.02))
			}
		}
		m, err := f.pack(rows, cols, raw)
		if err != nil {
			t.Fatal(err)
		}
		list[name] = m
	}
	return list
}

// zeros packs codes about a code of zero.
func zeros(group int) func(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	return func(rows, cols int, raw []byte) (*matrix.Matrix, error) {
		return grouped.PackQ4Z(rows, cols, group, raw)
	}
}

func TestProductsWithOffsetsAreTheFloat64Ones(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		const rows, cols, n = 35, 1536, 9
		for name, m := range withOffsets(t, r, rows, cols) {
			var x Acts
			x.Set(kerneltest.RandomVector(r, n*cols), n, cols)
			y, w := make([]float32, n*rows), make([]float32, cols)
			l := mustLinear(t, p, m)
			l.Mul(y, &x)
			for i := range n {
				codes := make([]float32, cols) // what codes are multiplied with
				for k := 0; k < cols; k += acts.GroupCols {
					var rec [acts.RecordBytes]byte
					acts.QuantizeGroup(&rec, x.Row(i)[k:k+acts.GroupCols], grouped.Limit(m.Packing))
					for j, q := range rec[:acts.GroupCols] {
						codes[k+j] = math.Float32frombits(binary.LittleEndian.Uint32(rec[32:])) * float32(int8(q))
					}
				}
				plain := *m
				plain.Offsets = nil
				for row := range rows {
					var want, size float64
					grouped.Row(w, &plain, row)
					for k, v := range w {
						want += float64(v) * float64(codes[k])
						size += math.Abs(float64(v) * float64(codes[k]))
					}
					matrices.Row(w, m.Offsets, row)
					each := cols / len(w[:m.Offsets.Cols])
					for k, v := range codes {
						want += float64(w[k/each]) * float64(v)
						size += math.Abs(float64(w[k/each]) * float64(v))
					}
					if got := y[i*rows+row]; !kerneltest.Near(got, want, 2e-6*size) {
						t.Fatalf("%s: y[%d][%d] = %v, want %v", name, i, row, got, want)
					}
				}
			}
			// A row has the same product alone, gathered, and in a stack.
			var one, gathered Acts
			alone := make([]float32, rows)
			one.Set(x.Row(4), 1, cols)
			l.Mul(alone, &one)
			gathered.Gather(&x.Rows, []int32{7, 4})
			two := make([]float32, 2*rows)
			l.Mul(two, &gathered)
			stack, err := Stack(nil, m)
			if err != nil {
				t.Fatal(err)
			}
			stacked := make([]float32, n*rows)
			mustLinear(t, p, stack).Mul(stacked, &x)
			if want := y[4*rows : 5*rows]; !kerneltest.SameBits(alone, want) || !kerneltest.SameBits(two[rows:], want) || !kerneltest.SameBits(stacked, y) {
				t.Errorf("%s: a row alone, gathered or of a stack has another product", name)
			}
		}
	})
}

func TestOffsetsAreAddedWithinTheProductOfTheCodes(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	runs := 0
	p.Observe(func(pool.Task, int, time.Duration) { runs++ })
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 9} {
		for name, m := range withOffsets(t, r, 160, 512) {
			count := func(m *matrix.Matrix) int {
				var x Acts
				x.Set(kerneltest.RandomVector(r, n*m.Cols), n, m.Cols)
				l := mustLinear(t, p, m)
				runs = 0
				l.Mul(make([]float32, n*m.Rows), &x)
				return runs
			}
			plain := *m
			plain.Offsets = nil
			if got, want := count(m), count(&plain); got != want {
				t.Errorf("%s, %d tokens: %d tasks, without offsets %d", name, n, got, want)
			}
		}
	}
}

func TestOffsetsThatDoNotFitAreRefused(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	r := rand.New(rand.NewPCG(3, 4))
	for name, m := range withOffsets(t, r, 16, 512) {
		for _, spoil := range []func(o *matrix.Matrix){
			func(o *matrix.Matrix) { o.Packing = matrix.F16 },
			func(o *matrix.Matrix) { o.Rows = 17 }, func(o *matrix.Matrix) { o.Cols = 7 }, func(o *matrix.Matrix) { o.Data = o.Data[64:] },
		} {
			bad, o := *m, *m.Offsets
			spoil(&o)
			bad.Offsets = &o
			if _, err := NewCPU(p).Load(&bad); err == nil {
				t.Errorf("%s: offsets of %dx%d in %d bytes are loaded", name, o.Rows, o.Cols, len(o.Data))
			}
		}
		if _, err := Stack(nil, m, matrices.Random(t, r, m.Packing, 16, 512)); err == nil {
			t.Errorf("%s: stacked with a matrix without offsets", name)
		}
	}
}
