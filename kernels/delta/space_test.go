package delta

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// spaceExample is random tokens of a state space.
type spaceExample struct{ x, b, c, decays []float32 }

func newSpaceExample(r *rand.Rand, dim, length, n, stride int) spaceExample {
	e := spaceExample{kerneltest.RandomVector(r, n*dim), kerneltest.RandomVector(r, n*stride), kerneltest.RandomVector(r, n*stride), make([]float32, n)}
	for t := range n {
		if e.decays[t] = 1 - r.Float32()/4; t%13 == 7 {
			e.decays[t] = 0 // forgets all
		}
	}
	return e
}

// through takes the tokens through a state, as many at a time as size says, and returns the outputs.
func (e *spaceExample) through(state []float32, dim, length, stride int, size func() int) []float32 {
	y := make([]float32, len(e.x))
	for at := 0; at < len(e.decays); {
		n := min(len(e.decays)-at, size())
		Space(state, dim, length, n, e.x[at*dim:], y[at*dim:], e.b[at*stride:], e.c[at*stride:], stride, e.decays[at:])
		at += n
	}
	return y
}

func TestOutputsOfAStateSpaceAgreeWithTheDefinition(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, dim := range []int{16, 48, 80} {
			for _, length := range []int{1, 7, 128} {
				const n = 23
				stride := length + 3
				e := newSpaceExample(r, dim, length, n, stride)
				state, check := kerneltest.Guarded(t, SpaceSize(dim, length))
				clear(state)
				got := e.through(state, dim, length, stride, func() int { return SpaceTokens })
				check()
				want := make([]float64, dim*length)
				for i := range n {
					for k := range dim {
						sum := 0.0
						for j := range length {
							s := &want[k*length+j]
							*s = float64(e.decays[i])**s + float64(e.x[i*dim+k])*float64(e.b[i*stride+j])
							sum += *s * float64(e.c[i*stride+j])
						}
						if !kerneltest.Near(got[i*dim+k], sum, 2e-4) {
							t.Fatalf("%d by %d: output %d of token %d is %v, want %v", dim, length, k, i, got[i*dim+k], sum)
						}
					}
				}
			}
		}
	})
}

// The routines do what those for vectors do one after the other, bit for bit, however many tokens go together.
func TestTokensOfAStateSpaceHaveTheSameBitsWhicheverGoTogether(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		const dim, length, n, stride = 48, 19, 31, 40
		r := rand.New(rand.NewPCG(3, 4))
		e := newSpaceExample(r, dim, length, n, stride)
		before := kerneltest.RandomVector(r, SpaceSize(dim, length))
		want, y := slices.Clone(before), make([]float32, n*dim)
		for i := range n {
			for lo := 0; lo < dim; lo += Tile {
				for j := range length {
					row := want[lo*length+j*Tile:][:Tile]
					vector.ScaleInto(row, e.decays[i])
					vector.Axpy(row, e.b[i*stride+j], e.x[i*dim+lo:][:Tile])
					vector.Axpy(y[i*dim+lo:][:Tile], e.c[i*stride+j], row)
				}
			}
		}
		for name, size := range map[string]func() int{
			"one": func() int { return 1 }, "two": func() int { return 2 }, "four": func() int { return SpaceTokens }, "any number": func() int { return 1 + r.IntN(SpaceTokens) },
		} {
			state := slices.Clone(before)
			if got := e.through(state, dim, length, stride, size); !kerneltest.SameBits(got, y) || !kerneltest.SameBits(state, want) {
				t.Errorf("tokens taken %s at a time have other bits", name)
			}
		}
		if n := testing.AllocsPerRun(5, func() { Space(want, dim, length, 4, e.x, y, e.b, e.c, stride, e.decays) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func BenchmarkSpace(b *testing.B) {
	const dim, length = 80, 128 // of Nemotron Nano 2
	for _, n := range []int{1, 4} {
		b.Run(map[int]string{1: "one token", 4: "four tokens"}[n], func(b *testing.B) {
			e := newSpaceExample(rand.New(rand.NewPCG(1, 1)), dim, length, n, length)
			state, y := make([]float32, SpaceSize(dim, length)), make([]float32, n*dim)
			b.ReportAllocs()
			for b.Loop() {
				Space(state, dim, length, n, e.x, y, e.b, e.c, length, e.decays)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/token")
		})
	}
}
