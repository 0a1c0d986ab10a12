package grouped_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/choice"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

// input is rows with the product that is under way.
type input struct {
	acts.Rows
	task bands.Task
}

func load(tb testing.TB, p *pool.Pool, m *matrix.Matrix) *bands.Linear {
	tb.Helper()
	l, err := bands.NewRunner(p, new(stream.Order)).Load(m, grouped.NewKernel(m), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// onEachMethod runs f with every instruction set and method of it that this machine has.
func onEachMethod(t *testing.T, f func(t *testing.T)) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		for _, method := range grouped.Methods(matrix.Q4) {
			t.Run(method, func(t *testing.T) {
				defer grouped.Force(choice.Always(method))()
				f(t)
			})
		}
	})
}

func TestGroupedProductsHaveTheSameBitsOnEveryVectorISA(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	onEachMethod(t, func(t *testing.T) {
		best := cpu.Active()
		if best != cpu.AVX512 && best != cpu.AVXVNNI {
			t.Skip("compares AVX-512 and AVX-VNNI with AVX2")
		}
		r := rand.New(rand.NewPCG(8, 8))
		const rows, cols = 80, 768
		for _, p := range matrices.Grouped {
			m := matrices.Random(t, r, p, rows, cols)
			wide := load(t, pool, m)
			restore := cpu.Override(cpu.AVX2)
			narrow := load(t, pool, m)
			restore()
			for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 21, 29, 65} { // of 65 the last is alone
				var in input
				in.Set(kerneltest.RandomVector(r, n*cols), n, cols)
				got, want := make([]float32, n*rows), make([]float32, n*rows)
				wide.Mul(got, &in.Rows, &in.task)
				narrow.Mul(want, &in.Rows, &in.task)
				if !kerneltest.SameBits(got, want) {
					t.Errorf("%v, %d tokens: %v and AVX2 differ", p, n, best)
				}
			}
		}
	})
}

// Of three tokens and more AVX2 multiplies panels of levels, in tiles of 3 to 6.
func TestProductsWithLevelsHaveTheBitsOfEachTokenAlone(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	const rows = 35 // three bands, the last not whole
	onEachMethod(t, func(t *testing.T) {
		if cpu.Active() == cpu.Generic {
			t.Skip("slow by design, and has one routine for all")
		}
		r := rand.New(rand.NewPCG(10, 10))
		for p, cols := range map[matrix.Packing]int{matrix.NL4: 17 * 32, matrix.NL4K: 3 * 256, matrix.NVFP4: 9 * 64} {
			l := load(t, pool, matrices.Random(t, r, p, rows, cols))
			const most = 66 // two tokens after those that are multiplied together
			x := kerneltest.RandomVector(r, most*cols)
			var in input
			want := make([]float32, most*rows)
			for i := range most {
				in.Set(x[i*cols:], 1, cols)
				l.Mul(want[i*rows:][:rows], &in.Rows, &in.task)
			}
			for _, n := range []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 64, 65, most} {
				in.Set(x[:n*cols], n, cols)
				got := make([]float32, n*rows)
				l.Mul(got, &in.Rows, &in.task)
				if !kerneltest.SameBits(got, want[:n*rows]) {
					t.Errorf("%v, %d tokens: not the bits of each alone", p, n)
				}
			}
		}
	})
}

// A file may say that a scale is no number, or none that is finite. What it multiplies is no
// number then, whichever kernel does it, and nothing else is.
func TestScalesThatAreNotFiniteGiveNaNInTheirRowAlone(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	const rows, cols, spoilt = 48, 256, 20
	blocks := map[matrix.Packing]struct {
		pack        func(rows, cols int, raw []byte) (*matrix.Matrix, error)
		block, size int
		scale       int // where it is in the block
	}{
		matrix.Q4: {grouped.PackQ4_0, 32, 18, 0}, matrix.Q8: {grouped.PackQ8_0, 32, 34, 0}, matrix.Q4M: {grouped.PackQ4_K, 256, 144, 0}, matrix.Q41: {grouped.PackQ4_1, 32, 20, 2},
		matrix.Q6: {grouped.PackQ6_K, 256, 210, 208}, matrix.Q1G128: {grouped.PackQ1_0, 128, 18, 0}, matrix.Q2G64: {grouped.PackQ2_0, 64, 18, 0},
	}
	onEachMethod(t, func(t *testing.T) {
		for p, b := range blocks {
			for _, half := range []uint16{0x7c00, 0xfc00, 0x7e00} {
				raw := make([]byte, rows*cols/b.block*b.size)
				for i := range raw {
					raw[i] = byte(0x11 * (i % 13))
				}
				for o := 0; o < len(raw); o += b.size {
					binary.LittleEndian.PutUint16(raw[o+b.scale:], 0x3c00)
				}
				binary.LittleEndian.PutUint16(raw[spoilt*cols/b.block*b.size+b.scale:], half)
				if p == matrix.Q4M {
					binary.LittleEndian.PutUint16(raw[2:], 0)
				}
				m, err := b.pack(rows, cols, raw)
				if err != nil {
					t.Fatal(err)
				}
				l := load(t, pool, m)
				for _, n := range []int{1, 2, 5, 8, 14} {
					var in input
					x := kerneltest.RandomVector(rand.New(rand.NewPCG(9, 9)), n*cols)
					in.Set(x, n, cols)
					y := make([]float32, n*rows)
					l.Mul(y, &in.Rows, &in.task)
					for i, v := range y {
						if isNaN := v != v; isNaN != (i%rows == spoilt) || math.IsInf(float64(v), 0) {
							t.Fatalf("%v, scale %#x in row %d, %d tokens: y[%d][%d] = %v", p, half, spoilt, n, i/rows, i%rows, v)
						}
					}
				}
			}
		}
	})
}

func TestIntegerSumsAreExactAtTheEndsOfTheirRange(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	onEachMethod(t, func(t *testing.T) {
		const rows, cols, n = 64, 512, 35
		signs := []func(k int) float32{
			func(int) float32 { return 1 }, func(int) float32 { return -1 },
			func(k int) float32 { return float32(1 - 2*(k%2)) }, func(k int) float32 { return float32(1 - 2*(k/2%2)) },
			func(k int) float32 { return float32(1 - 2*(k/16%2)) },
			func(k int) float32 { return []float32{1, 1.0 / 127, 0}[(k%16+1)/8] }, // Σ|q| of a half is mostHalf
			func(k int) float32 { return []float32{1, 0, 0}[k%16/6] },             // and mostTight
		}
		for _, p := range matrices.Grouped {
			for _, code := range []byte{0x00, 0xff, 0x80, 0x7f, 0x77, 0x0f, 0xf0}[:sweep.Cases(3, 7)] {
				m := matrices.Extreme(t, p, rows, cols, code)
				l := load(t, pool, m)
				w := make([]float32, cols)
				grouped.Row(w, m, rows-1)
				for s, sign := range signs {
					if s == 5 && grouped.Limit(p) == acts.Tight {
						continue // its codes are smaller
					}
					x := make([]float32, n*cols)
					for i := range x {
						x[i] = 127 * sign(i%cols)
					}
					var want, l1 float64
					for k, v := range w {
						want += float64(v) * float64(x[k])
						l1 += math.Abs(float64(v) * float64(x[k]))
					}
					sizes := []int{1, 2, 4, 8, 9, 14, n}
					if cpu.Active() == cpu.Generic && !sweep.All(t) {
						sizes = []int{1, 2, 9} // slow by design, and one loop for all
					}
					for _, tokens := range sizes {
						var in input
						in.Set(x[:tokens*cols], tokens, cols)
						y := make([]float32, tokens*rows)
						l.Mul(y, &in.Rows, &in.task)
						for i, v := range y {
							if !kerneltest.Near(v, want, 1e-6*l1) {
								t.Fatalf("%v codes %#x, signs %d, %d tokens: y[%d] = %v, want %v", p, code, s, tokens, i, v, want)
							}
						}
					}
				}
			}
		}
	})
}

func TestWeightsAreTheLevelsThatCodesName(t *testing.T) {
	for name, levels := range map[string]*matrix.Levels{
		"IQ2": grouped.LevelsIQ2, "IQ1": grouped.LevelsIQ1, "IQ3_XXS": grouped.LevelsIQ3XXS, "IQ3_S": grouped.LevelsIQ3S, "Q3_K": grouped.LevelsQ3K, "IQ4": grouped.LevelsIQ4,
	} {
		used := len(levels.Of)
		for used > 0 && levels.Of[used-1] == 0 {
			used--
		}
		m, err := grouped.PackSuperblocks(levels, 1, 256, func(s *grouped.Superblock, _, _ int) {
			*s = grouped.Superblock{D: levels.Scale, Scales: [16]int8{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}
			for i := range 256 {
				s.Codes[i/8] |= uint64(i*i%used) << (i % 8 * 8)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, 256)
		grouped.Row(got, m, 0)
		for i, x := range got {
			if want := float32(levels.Of[i*i%used]) * levels.Scale; x != want {
				t.Errorf("%s: weight %d is %v, want %v", name, i, x, want)
			}
		}
	}
}

// Kernels take bands two by two, and the last one of an odd number alone.
func TestABandHasTheSameBitsAloneAndBesideAnother(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	onEachMethod(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 9))
		const cols, most = 768, 19
		for _, p := range matrices.Grouped {
			both := matrices.Random(t, r, p, 2*bands.Rows, cols)
			x := kerneltest.RandomVector(r, most*cols)
			for i := range cols { // sums as large as they get
				x[i] = float32(1 - i/acts.GroupCols%2*2)
			}
			for _, n := range []int{1, 3, 8, 15, most} {
				var in input
				in.Set(x, n, cols)
				got, want := make([]float32, n*2*bands.Rows), make([]float32, n*bands.Rows)
				load(t, pool, both).Mul(got, &in.Rows, &in.task)
				for b := range 2 {
					half := len(both.Data) / 2
					alone := *both
					alone.Rows, alone.Data = bands.Rows, both.Data[b*half:(b+1)*half]
					load(t, pool, &alone).Mul(want, &in.Rows, &in.task)
					for i := range n {
						if !kerneltest.SameBits(got[i*2*bands.Rows+b*bands.Rows:][:bands.Rows], want[i*bands.Rows:][:bands.Rows]) {
							t.Fatalf("%v: band %d of token %d of %d has not the bits it has alone", p, b, i, n)
						}
					}
				}
			}
		}
	})
}

// Methods read one packed matrix, and each width may have its own.
func TestEveryChoiceOfMethodsByWidthGivesTheSameBits(t *testing.T) {
	pool := pool.New(2)
	defer pool.Close()
	r := rand.New(rand.NewPCG(12, 12))
	const rows, cols, most = 5*bands.Rows + 3, 512, 70 // an odd band, and one that is not whole
	froms := []int{1, 2, 5, 9}
	for _, p := range matrices.Grouped {
		methods := grouped.Methods(p)
		if len(methods) < 2 {
			continue
		}
		m, x := matrices.Random(t, r, p, rows, cols), kerneltest.RandomVector(r, most*cols)
		want := map[int][]float32{}
		for choices := range 1 << len(froms) {
			var rules choice.Rules
			for i, from := range froms {
				rules = append(rules, choice.Rule{From: from, Method: methods[choices>>i&1]})
			}
			restore := grouped.Force(rules)
			l := load(t, pool, m)
			restore()
			for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 16, 31, 32, 33, 64, most} {
				var in input
				in.Set(x[:n*cols], n, cols)
				got := make([]float32, n*rows)
				l.Mul(got, &in.Rows, &in.task)
				if want[n] == nil {
					want[n] = got
				}
				if !kerneltest.SameBits(got, want[n]) {
					t.Errorf("%v, %d tokens by %v: not the bits of %v alone", p, n, rules, methods[0])
				}
			}
		}
	}
}
