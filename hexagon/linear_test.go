package hexagon

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

// deviceMatrices are packings that the device takes, with a matrix of each.
func deviceMatrices(t testing.TB, r *rand.Rand, rows, cols int) map[string]*matrix.Matrix {
	all := map[string]*matrix.Matrix{}
	for _, p := range []matrix.Packing{matrix.Q4, matrix.Q4M, matrix.Q41, matrix.Q8, matrix.FP4, matrix.NL4, matrix.Q1G128, matrix.Q2G64, matrix.Q2G128} {
		all[p.String()] = matrices.Random(t, r, p, rows, cols)
	}
	for _, p := range []matrix.Packing{matrix.I1, matrix.I2} {
		trits, scale := make([]int8, rows*cols), make([]float32, rows)
		for i := range trits {
			trits[i] = int8(r.IntN(3) - 1)
		}
		for i := range scale {
			scale[i] = float32(r.NormFloat64())
		}
		m, err := ternary.Pack(rows, cols, trits, scale, p)
		if err != nil {
			t.Fatal(err)
		}
		all[p.String()] = m
	}
	return all
}

// started is a backend on device that has loaded w.
func started(t testing.TB, open Opener, opt Options, w ...*matrix.Matrix) (*Backend, []kernels.Linear) {
	t.Helper()
	b := New("test", open, opt)
	var all []kernels.Linear
	for _, m := range w {
		l, err := b.Load(m)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, all
}

func gaussians(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func TestConvertedMatricesHoldTheirWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const rows, cols = 130, 512
	all := deviceMatrices(t, r, rows, cols)
	for _, p := range []matrix.Packing{matrix.NL4K, matrix.NL4S} {
		all[p.String()] = matrices.Random(t, r, p, rows, cols)
	}
	maps.Copy(all, withOffsets(t, r, rows, cols))
	for name, m := range all {
		d, err := convert(m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, got := make([]float32, cols), make([]float32, cols)
		for row := range rows {
			matrices.Row(want, m, row)
			d.Dequantize(got, row)
			most := largest(want)
			for k := range want {
				if diff := math.Abs(float64(got[k] - want[k])); !(diff <= float64(most)/2000) {
					t.Fatalf("%s: weight %d of row %d is %v, want %v", name, k, row, got[k], want[k])
				}
			}
		}
	}
	for _, p := range []matrix.Packing{matrix.Q6, matrix.NL3K, matrix.NVFP4, matrix.F32} {
		if _, err := convert(matrices.Random(t, r, p, rows, cols)); !errors.Is(err, matrix.ErrUnsupported) || !strings.Contains(err.Error(), p.String()) {
			t.Errorf("%v has no exact form on the device: %v", p, err)
		}
	}
}

func TestProductsOfAllPackingsAndPathsAreNearTheExactOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const rows, cols = 130, 512
	for name, m := range deviceMatrices(t, r, rows, cols) {
		for path, within := range map[Path]float64{PathLookup: 1.0 / 2000, PathTiles: 1.0 / 500} {
			t.Run(fmt.Sprintf("%s/%s", name, path), func(t *testing.T) {
				_, l := started(t, newRefDevice, Options{Path: path}, m)
				for _, n := range []int{1, sweep.Cases(3, 33)} {
					x := gaussians(r, n*cols)
					for k := range cols {
						x[k] *= 1000 // rows have scales of their own
					}
					var acts kernels.Acts
					acts.Set(x, n, cols)
					y, w := make([]float32, n*rows), make([]float32, cols)
					l[0].Mul(y, &acts)
					for i := range n {
						for j := 0; j < rows; j += 43 {
							matrices.Row(w, m, j)
							want, size := 0.0, 0.0
							for k, f := range w {
								p := float64(f) * float64(x[i*cols+k])
								want, size = want+p, size+p*p
							}
							if got := float64(y[i*rows+j]); !(math.Abs(got-want) <= within*math.Sqrt(size)*3) {
								t.Fatalf("output %d of row %d of %d is %v, want %v (norm %v)", j, i, n, got, want, math.Sqrt(size))
							}
						}
					}
				}
			})
		}
	}
}

// Rounded to four bits they are multiplied by tiles, to eight as bytes too.
func TestRoundedMatricesAreMultiplied(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	const rows, cols, n = 140, 512, 3
	for _, p := range []matrix.Packing{matrix.NVFP4, matrix.F32, matrix.Q6}[:sweep.Cases(1, 3)] {
		for to, most := range map[Rounding]float64{RoundF16: 1e-3, RoundQ8_0: 0.01, RoundQ4_0: 0.15, RoundIQ4_NL: 0.15, RoundNF4: 0.15, RoundFP4: 0.15} {
			m := matrices.Random(t, r, p, rows, cols)
			b, l := started(t, newGoDevice, Options{Round: to}, m)
			x := gaussians(r, n*cols)
			var acts kernels.Acts
			acts.Set(x, n, cols)
			y, w := make([]float32, n*rows), make([]float32, cols)
			l[0].Mul(y, &acts)
			var wrong, all float64
			for i := range n {
				for j := range rows {
					matrices.Row(w, m, j)
					want := 0.0
					for k, f := range w {
						want += float64(f) * float64(x[i*cols+k])
					}
					d := float64(y[i*rows+j]) - want
					wrong, all = wrong+d*d, all+want*want
				}
			}
			if w := b.Work(); (w.Lookups == n) != (to == RoundQ8_0) {
				t.Errorf("%v as %s: %d rows as bytes, %d by tiles", p, to, w.Lookups, w.Tiled)
			}
			if e := math.Sqrt(wrong / all); !(e < most) {
				t.Errorf("%v as %s: relative error %.3f", p, to, e)
			} else {
				t.Logf("%v as %s: relative error %.3f", p, to, e)
			}
		}
	}
}

func TestARowHasTheSameBitsAloneAndInACrowdOnOnePath(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const rows, cols, n = 128, 256, 70
	m := deviceMatrices(t, r, rows, cols)["Q4M"]
	x := gaussians(r, n*cols)
	for _, path := range []Path{PathLookup, PathTiles} {
		b, l := started(t, newRefDevice, Options{Path: path}, m)
		var acts kernels.Acts
		all, one := make([]float32, n*rows), make([]float32, rows)
		acts.Set(x, n, cols)
		l[0].Mul(all, &acts)
		for _, i := range []int{0, 31, 32, 69} {
			acts.Set(x[i*cols:], 1, cols)
			l[0].Mul(one, &acts)
			for j, f := range one {
				if f != all[i*rows+j] {
					t.Fatalf("%s: output %d of row %d is %v alone and %v in a crowd", path, j, i, f, all[i*rows+j])
				}
			}
		}
		if err := b.Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMatricesThatReadTheSameRowsShareTheirTablesAndTiles(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	const cols = 256
	q, v := deviceMatrices(t, r, 128, cols)["Q4"], deviceMatrices(t, r, 256, cols)["I2"]
	for _, path := range []Path{PathLookup, PathTiles} {
		tables := 0
		open := func(bytes int) (device.Device, error) {
			return hooked(bytes, nil, func(p *device.Packet, _ []byte) {
				if p.Op == device.OpPrecompute {
					tables++
				}
			})
		}
		b, l := started(t, open, Options{Path: path}, q, v)
		var acts kernels.Acts
		y := make([]float32, 2*256)
		for round := 1; round <= 2; round++ {
			acts.Set(gaussians(r, 2*cols), 2, cols)
			before, written := tables, b.Work().Written
			l[0].Mul(y, &acts)
			after, of := tables, b.Work().Written
			if l[1].Mul(y, &acts); tables != after || b.Work().Written != of {
				t.Errorf("%s: the second matrix of round %d makes its own", path, round)
			}
			if of == written || path == PathLookup && after != before+1 {
				t.Errorf("%s: rows of round %d share what was made for others", path, round)
			}
		}
	}
}

func TestOfWideMatricesTooANeighbourChangesNoProduct(t *testing.T) {
	sweep.Full(t)
	r := rand.New(rand.NewPCG(7, 7))
	const rows, cols, n = 128, 10240, 70 // more columns than are multiplied at once
	for name, w := range deviceMatrices(t, r, rows, cols) {
		_, ls := started(t, func(bytes int) (device.Device, error) { return device.NewGo(nil, bytes) }, Options{Path: PathTiles}, w)
		x, all, one := gaussians(r, n*cols), make([]float32, n*rows), make([]float32, rows)
		var acts kernels.Acts
		acts.Set(x, n, cols)
		ls[0].Mul(all, &acts)
		acts.Set(x[:cols], 1, cols)
		ls[0].Mul(one, &acts)
		if !slices.Equal(one, all[:rows]) {
			t.Errorf("%s: a row's product is another one beside others", name)
		}
	}
}

// Few rows by lookups, more by tiles of bytes, more than are multiplied at once among them.
func TestWith8BitsTernaryProductsAreTheCPUs(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	const rows, cols = 150, 500
	p := newPool(t)
	cpu := kernels.NewCPU(p)
	for name, w := range deviceMatrices(t, r, rows, cols/256*256+256) {
		if !w.Packing.Ternary() {
			continue
		}
		b, ls := started(t, func(bytes int) (device.Device, error) { return device.NewGo(nil, bytes) }, Options{Path: PathInt8}, w)
		here, err := cpu.Load(w)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{3, 40, tileRows + 5} {
			x := gaussians(r, n*w.Cols)
			clear(x[:w.Cols]) // a row of zeros, and one of numbers that are as good as zeros
			for i := range w.Cols {
				x[w.Cols+i] *= 0x1p-130
				x[2*w.Cols+i] *= 1e30
			}
			var acts kernels.Acts
			acts.Set(x, n, w.Cols)
			got, want := make([]float32, n*rows), make([]float32, n*rows)
			before := b.Work().Tiled
			ls[0].Mul(got, &acts)
			here.Mul(want, &acts)
			if !slices.Equal(got, want) {
				t.Errorf("%s: NMSE %.3g against the CPU's products, want the same bits", name, nmse(got, want))
			}
			few := LookupRows(layout.Ternary, true)
			if tiled := b.Work().Tiled - before; tiled != int64(n) && n > few || tiled != 0 && n <= few {
				t.Errorf("%s: of %d rows the tile unit multiplies %d", name, n, tiled)
			}
		}
	}
}

func TestTilesOfBytesAreOfExactSumsThatFit(t *testing.T) {
	for _, c := range []struct {
		layout.Format
		k    int
		fits bool
	}{
		{layout.Ternary, 6912, true}, {layout.Ternary, 16384, false}, // no room
		{layout.Binary, 8192, true}, {layout.Format{Bits: 4, A: 1, B: 8}, 2560, true},
		{layout.Format{Bits: 4, A: 1, B: 8}, 4608, false}, // sums beyond 24 bits
		{layout.Q4_0, 2560, false}, {layout.Format{Bits: 2, A: 1, B: 1, Group: 64}, 2560, false}, {layout.Q8_0, 2560, false}, {layout.NF4, 2560, false},
	} {
		w, err := layout.New(128, c.k, c.Format)
		if err != nil {
			t.Fatal(err)
		}
		l := &linear{Weights: w}
		if fits := l.fitsBytes(PathInt8.levels()); fits != c.fits {
			t.Errorf("%+v of %d columns: %v", c.Format, c.k, fits)
		}
	}
}
