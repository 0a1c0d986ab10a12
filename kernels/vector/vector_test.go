package vector

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
)

// vectorSizes lie around multiples of every vector's size.
var vectorSizes = []int{0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 100, 257, 1031}

func TestElementwisePrimitivesAgreeWithFloat64(t *testing.T) {
	type op struct {
		name  string
		run   func(dst, a, b []float32)
		want  func(a, b float64) float64
		bound float64 // relative, on top of 1e-36
	}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	ops := []op{
		{"Add", Add, func(a, b float64) float64 { return a + b }, 6e-8},
		{"Scale", func(d, a, _ []float32) { Scale(d, a, 0.3) }, func(a, _ float64) float64 { return a * float64(float32(0.3)) }, 6e-8},
		{"MulAdd", func(d, a, b []float32) {
			x, squares := slices.Clone(a), slices.Clone(b)
			Mul(squares, b, b) // sums of one sign
			copy(d, a)
			MulAdd(d, x, squares)
		}, func(a, b float64) float64 { return a + a*b*b }, 2e-7},
		{"SwiGLU", SwiGLU, func(a, b float64) float64 { return a * sigmoid(a) * b }, 4e-7},
		{"GLU", GLU, func(a, b float64) float64 { return sigmoid(a) * b }, 4e-7},
		{"GeGLU", GeGLU, func(a, b float64) float64 { return a * sigmoid(geluArg*(a+geluCube*a*a*a)) * b }, 2e-5},
		{"ReLU2GLU", ReLU2GLU, func(a, b float64) float64 { return max(a, 0) * max(a, 0) * b }, 2e-7},
	}
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, o := range ops {
			for _, n := range vectorSizes {
				a, b := kerneltest.RandomVector(r, n), kerneltest.RandomVector(r, n)
				for i := range a {
					a[i] *= 6
				}
				dst, check := kerneltest.Guarded(t, n)
				o.run(dst, a, b)
				check()
				for i := range dst {
					want := o.want(float64(a[i]), float64(b[i]))
					if !kerneltest.Near(dst[i], want, o.bound*math.Abs(want)+1e-36) {
						t.Fatalf("%s(%v, %v) = %v, want %v", o.name, a[i], b[i], dst[i], want)
					}
				}
				copy(dst, a)
				o.run(dst, dst, b)
				check()
				for i := range dst {
					if want := o.want(float64(a[i]), float64(b[i])); !kerneltest.Near(dst[i], want, o.bound*math.Abs(want)+1e-36) {
						t.Fatalf("%s in place (%v, %v) = %v, want %v", o.name, a[i], b[i], dst[i], want)
					}
				}
			}
		}
	})
}

func TestReductionsAgreeWithFloat64(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, n := range vectorSizes {
			a, b := kerneltest.RandomVector(r, n), kerneltest.RandomVector(r, n)
			var dot, l1, squares float64
			top, size := math.Inf(-1), 0.0
			for i := range a {
				p := float64(a[i]) * float64(b[i])
				dot, l1 = dot+p, l1+math.Abs(p)
				squares += float64(a[i]) * float64(a[i])
				top, size = max(top, float64(a[i])), max(size, math.Abs(float64(a[i])))
			}
			if got := Dot(a, b); !kerneltest.Near(got, dot, 2e-6*l1) {
				t.Errorf("Dot of %d = %v, want %v", n, got, dot)
			}
			if got := Max(a); float64(got) != top {
				t.Errorf("Max of %d = %v, want %v", n, got, top)
			}
			if got := AbsMax(a); float64(got) != size {
				t.Errorf("AbsMax of %d = %v, want %v", n, got, size)
			}
			within, count := 0.0, 0
			for _, v := range a {
				if v > -0.5 && v <= 1.25 {
					within, count = within+float64(v), count+1
				}
			}
			if sum, m := SumWithin(a, -0.5, 1.25); m != count || !kerneltest.Near(sum, within, 2e-6*float64(n)) {
				t.Errorf("SumWithin of %d = %v of %d, want %v of %d", n, sum, m, within, count)
			}
			dst, check := kerneltest.Guarded(t, n)
			RMSNorm(dst, a, b, 1e-5)
			check()
			inv := 1 / math.Sqrt(squares/float64(max(n, 1))+float64(float32(1e-5)))
			for i, v := range dst {
				if want := float64(a[i]) * inv * float64(b[i]); !kerneltest.Near(v, want, 2e-7*math.Abs(want)) {
					t.Fatalf("RMSNorm of %d at %d = %v, want %v", n, i, v, want)
				}
			}
			copy(dst, b)
			Axpy(dst, 0.7, a)
			check()
			for i, v := range dst {
				s := float64(float32(0.7)) * float64(a[i])
				if want := float64(b[i]) + s; !kerneltest.Near(v, want, 2e-7*(math.Abs(s)+math.Abs(float64(b[i])))) {
					t.Fatalf("Axpy of %d at %d = %v, want %v", n, i, v, want)
				}
			}
		}
	})
}

func TestArgmaxIsTheLowestIndexOfTheLargest(t *testing.T) {
	nan := float32(math.NaN())
	kerneltest.OnEachISA(t, func(t *testing.T) {
		for _, c := range []struct {
			x    []float32
			want int
		}{
			{nil, -1}, {[]float32{nan, nan}, -1}, {[]float32{nan, 2, nan, 2}, 1}, {[]float32{negInf, negInf}, 0},
			{append(make([]float32, 100), 1, 1), 100}, {append([]float32{-1, nan}, make([]float32, 40)...), 2},
		} {
			if got := Argmax(c.x); got != c.want {
				t.Errorf("Argmax(%v) = %v, want %v", c.x, got, c.want)
			}
		}
	})
}

func TestExpSumIsAccurateOverItsRange(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		worst := 0.0
		x := make([]float32, 4096)
		dst := make([]float32, len(x))
		for i := range x {
			x[i] = float32(i)*(-87.3/4096) - 0.001
		}
		sum, want := ExpSum(dst, x, 0), 0.0
		for i, v := range dst {
			e := math.Exp(float64(x[i]))
			want += e
			worst = max(worst, math.Abs(float64(v)-e)/e)
		}
		if worst > 1.3e-7 {
			t.Errorf("exp is off by %g relative, want at most 1.3e-7", worst)
		}
		if !kerneltest.Near(sum, want, 1e-6*want) {
			t.Errorf("sum = %v, want %v", sum, want)
		}
		special := []float32{negInf, -1000, -87.4, 0, float32(math.NaN()), 3}
		ExpSum(special, special, 3)
		if special[0] != 0 || special[1] != 0 || special[2] != 0 || special[4] == special[4] || special[5] != 1 {
			t.Errorf("exp of the extremes = %v", special)
		}
	})
}

func TestExponentialsHaveTheSameBitsAtEveryPlace(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		x, up := kerneltest.RandomVector(r, 40), kerneltest.RandomVector(r, 40)
		whole := make([]float32, 40)
		part := make([]float32, 40)
		for name, f := range map[string]func(dst, a, b []float32){
			"SwiGLU": SwiGLU, "GeGLU": GeGLU, "exp": func(d, a, _ []float32) { ExpSum(d, a, 1) },
		} {
			f(whole, x, up)
			for lo := range 20 {
				for hi := lo + 1; hi <= 40; hi++ {
					f(part[lo:hi], x[lo:hi], up[lo:hi])
					for i := lo; i < hi; i++ {
						if math.Float32bits(part[i]) != math.Float32bits(whole[i]) {
							t.Fatalf("%s: element %d = %v in [%d, %d), %v in the whole", name, i, part[i], lo, hi, whole[i])
						}
					}
				}
			}
		}
		padded := append(append([]float32{}, x[:13]...), negInf, negInf, negInf, negInf)
		if a, b := ExpSum(part[:13], x[:13], 1), ExpSum(part[:17], padded, 1); a != b {
			t.Errorf("sum = %v, with terms of zero %v", a, b)
		}
	})
}

func TestSaturatedGatesStayFinite(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		gate := []float32{-3e38, -1000, -100, 100, 1000, 0, -0.5, 3e4, -3e4}
		up := make([]float32, len(gate))
		for i := range up {
			up[i] = 1
		}
		dst := make([]float32, len(gate))
		SwiGLU(dst, gate, up)
		for i, g := range gate[:5] {
			if want := max(g, 0); !kerneltest.Near(dst[i], float64(want), 2) || math.IsNaN(float64(dst[i])) {
				t.Errorf("SwiGLU(%v) = %v, want about %v", g, dst[i], want)
			}
		}
		GeGLU(dst[1:], gate[1:], up[1:])
		for i, g := range gate[1:5] {
			if want := max(g, 0); !kerneltest.Near(dst[i+1], float64(want), 1e-3) {
				t.Errorf("GeGLU(%v) = %v, want about %v", g, dst[i+1], want)
			}
		}
	})
}

func TestRopeRotatesPairsInBothOrders(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, half := range []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 64} {
			for _, extra := range []int{0, 5} {
				headDim, heads := 2*half+extra, 3
				x := kerneltest.RandomVector(r, heads*headDim)
				cos, sin := make([]float32, half), make([]float32, half)
				for i := range cos {
					a := r.Float64() * 7
					cos[i], sin[i] = float32(math.Cos(a)), float32(math.Sin(a))
				}
				for name, o := range map[string]struct {
					rotate func(x []float32, headDim int, cos, sin []float32)
					pair   func(i int) (int, int)
				}{
					"pairs":  {RopePairs, func(i int) (int, int) { return 2 * i, 2*i + 1 }},
					"halves": {RopeHalves, func(i int) (int, int) { return i, i + half }},
				} {
					got, check := kerneltest.Guarded(t, len(x))
					copy(got, x)
					o.rotate(got, headDim, cos, sin)
					check()
					for h := 0; h < len(x); h += headDim {
						for i := range half {
							a, b := o.pair(i)
							c, s := float64(cos[i]), float64(sin[i])
							wantA := float64(x[h+a])*c - float64(x[h+b])*s
							wantB := float64(x[h+a])*s + float64(x[h+b])*c
							if !kerneltest.Near(got[h+a], wantA, 1e-6) || !kerneltest.Near(got[h+b], wantB, 1e-6) {
								t.Fatalf("%s of %d: pair %d = %v, %v, want %v, %v", name, half, i, got[h+a], got[h+b], wantA, wantB)
							}
						}
						for i := 2 * half; i < headDim; i++ {
							if got[h+i] != x[h+i] {
								t.Fatalf("%s: element %d beyond the rotated ones changed", name, i)
							}
						}
					}
				}
			}
		}
	})
}

func TestPrimitivesAllocateNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const n, d = 192, 64
	q, acc := kerneltest.RandomVector(r, n), make([]float32, n)
	kerneltest.OnEachISA(t, func(t *testing.T) {
		if a := testing.AllocsPerRun(10, func() {
			RMSNorm(acc, acc, q, 1e-5)
			SwiGLU(acc, acc, q)
			RopePairs(acc, d, q[:d/2], q[d/2:d])
		}); a != 0 {
			t.Errorf("%v allocations, want 0", a)
		}
	})
}

func BenchmarkVector(b *testing.B) {
	const n = 4096
	r := rand.New(rand.NewPCG(1, 1))
	dst, x, w := make([]float32, n), kerneltest.RandomVector(r, n), kerneltest.RandomVector(r, n)
	half := make([]uint16, n)
	for name, f := range map[string]func(){
		"RMSNorm":   func() { RMSNorm(dst, x, w, 1e-5) },
		"SwiGLU":    func() { SwiGLU(dst, x, w) },
		"GeGLU":     func() { GeGLU(dst, x, w) },
		"ExpSum":    func() { ExpSum(dst, x, 4) },
		"Add":       func() { Add(dst, x, w) },
		"Dot":       func() { Dot(x, w) },
		"Argmax":    func() { Argmax(x) },
		"SumWithin": func() { SumWithin(x, -1, 1) },
		"RopePairs": func() { RopePairs(dst, 128, x[:64], w[:64]) },
		"F32ToF16":  func() { F32ToF16(half, x) },
	} {
		b.Run(fmt.Sprintf("%v/%s/%d", cpu.Active(), name, n), func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gelem/s")
		})
	}
}

func TestSumWithinTakesTheUpperBoundAndNoNaN(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		x := []float32{1, 2, nan, 3, 4, -inf, inf, 2, nan, 3, -1}
		for _, c := range []struct {
			lo, hi float32
			n      int
			sum    float32
		}{{1, 3, 4, 10}, {2, 2, 0, 0}, {-inf, 4, 7, 14}, {3, inf, 2, inf}, {nan, 3, 0, 0}, {1, nan, 0, 0}} {
			if sum, n := SumWithin(x, c.lo, c.hi); n != c.n || sum != c.sum {
				t.Errorf("SumWithin(%v, %v) = %v of %d, want %v of %d", c.lo, c.hi, sum, n, c.sum, c.n)
			}
		}
	})
}

func TestSoftCapFollowsTanh(t *testing.T) {
	for _, limit := range []float32{0.5, 30, 50} {
		var x []float32
		for _, v := range []float32{0, 1e-6, 0.1, 0.7, 3, 20, 49, 90, 1e4, 1e30, float32(math.Inf(1))} {
			x = append(x, v, -v)
		}
		got := slices.Clone(x)
		SoftCap(got, limit)
		for i, v := range x {
			if want := float64(limit) * math.Tanh(float64(v/limit)); !(math.Abs(float64(got[i])-want) <= 1e-6*float64(limit)) {
				t.Errorf("SoftCap(%v, %v) = %v, want %v", v, limit, got[i], want)
			}
		}
	}
	none := []float32{float32(math.NaN())}
	if SoftCap(none, 1); none[0] == none[0] {
		t.Errorf("SoftCap(NaN) = %v", none[0])
	}
}
