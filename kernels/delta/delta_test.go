package delta

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// example is random tokens, side by side in rows as a layer has them: q, k, v,
// decay and beta.
func example(r *rand.Rand, keys, n int) (x []float32, t Tokens) {
	width := 2*keys + Tile + 2
	x = kerneltest.RandomVector(r, n*width+13)
	t = Tokens{N: n, Q: x, K: x[keys:], V: x[2*keys:], Stride: width, Decay: x[width-2:], Beta: x[width-1:], Gates: width}
	for i := range n {
		vector.L2Norm(x[i*width:][:keys], 1, 1e-6)
		vector.L2Norm(x[i*width+keys:][:keys], 1, 1e-6)
		t.Decay[i*width], t.Beta[i*width] = 1-r.Float32()/4, r.Float32()
	}
	return x, t
}

// reference is Update in float64: state and outputs.
func reference(state []float32, keys int, t Tokens) (s, out []float64) {
	s = make([]float64, len(state))
	for i, x := range state {
		s[i] = float64(x)
	}
	for n := range t.N {
		q, k, v := t.Q[n*t.Stride:], t.K[n*t.Stride:], t.V[n*t.Stride:]
		decay, beta := float64(t.Decay[n*t.Gates]), float64(t.Beta[n*t.Gates])
		for c := range Tile {
			u, o := 0.0, 0.0
			for i := range keys {
				s[i*Tile+c] *= decay
				u += float64(k[i]) * s[i*Tile+c]
			}
			for i := range keys {
				s[i*Tile+c] += float64(k[i]) * beta * (float64(v[c]) - u)
				o += float64(q[i]) * s[i*Tile+c]
			}
			out = append(out, o)
		}
	}
	return s, out
}

func TestUpdatesAgreeWithFloat64(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, keys := range []int{4, 16, 32, 128} {
			for _, n := range []int{1, 2, 7, 40} {
				_, tokens := example(r, keys, n)
				state, check := kerneltest.Guarded(t, keys*Tile)
				copy(state, kerneltest.RandomVector(r, len(state)))
				want, out := reference(state, keys, tokens)
				Update(state, &tokens)
				check()
				for i, x := range state {
					if !kerneltest.Near(x, want[i], 2e-5) {
						t.Fatalf("%d keys, %d tokens: state %d is %v, want %v", keys, n, i, x, want[i])
					}
				}
				for i, x := range out {
					if got := tokens.V[i/Tile*tokens.Stride+i%Tile]; !kerneltest.Near(got, x, 2e-5) {
						t.Fatalf("%d keys, %d tokens: output %d is %v, want %v", keys, n, i, got, x)
					}
				}
			}
		}
	})
}

func TestTokensOneByOneHaveTheBitsOfAllAtOnce(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		const keys, n = 32, 19
		whole, all := example(rand.New(rand.NewPCG(3, 4)), keys, n)
		parts := slices.Clone(whole)
		a, b := make([]float32, keys*Tile), make([]float32, keys*Tile)
		Update(a, &all)
		for i := range n {
			at := parts[i*all.Stride:]
			Update(b, &Tokens{N: 1, Q: at, K: at[keys:], V: at[2*keys:], Decay: at[all.Stride-2:], Beta: at[all.Stride-1:]})
		}
		if !kerneltest.SameBits(a, b) || !kerneltest.SameBits(whole, parts) {
			t.Error("tokens one by one have other bits than in one call")
		}
	})
}

func TestAConvolutionIsTheSameInPieces(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		for _, taps := range []int{2, 4, MostTaps} {
			for _, channels := range []int{5, 16, Channels} {
				t.Run(fmt.Sprintf("%d taps of %d channels", taps, channels), func(t *testing.T) {
					const n = 23
					r := rand.New(rand.NewPCG(uint64(taps), uint64(channels)))
					stride, ld := channels+3, channels+1
					in, w := kerneltest.RandomVector(r, n*stride), kerneltest.RandomVector(r, taps*ld)
					before := kerneltest.RandomVector(r, (taps-1)*ld)
					whole, tail := slices.Clone(in), slices.Clone(before)
					Conv(whole, n, stride, channels, w, tail, ld, taps, nil, 0)
					for i := range n {
						for c := range channels {
							sum := 0.0
							for j := range taps {
								from := i - taps + 1 + j
								x := in[max(0, from)*stride+c]
								if from < 0 {
									x = before[(taps-1+from)*ld+c]
								}
								sum += float64(w[j*ld+c]) * float64(x)
							}
							if want := sum / (1 + math.Exp(-sum)); !kerneltest.Near(whole[i*stride+c], want, 1e-5) {
								t.Fatalf("row %d channel %d is %v, want %v", i, c, whole[i*stride+c], want)
							}
						}
					}
					// In pieces of a few rows, with a mark inside one.
					pieces, end := slices.Clone(in), slices.Clone(before)
					const markAt = 11
					mark := make([]float32, len(before))
					for lo := 0; lo < n; {
						size := min(n-lo, 1+r.IntN(9))
						if lo <= markAt && markAt < lo+size && markAt > lo {
							Conv(pieces[lo*stride:], size, stride, channels, w, end, ld, taps, mark, markAt-lo)
						} else {
							Conv(pieces[lo*stride:], size, stride, channels, w, end, ld, taps, nil, 0)
							if lo+size == markAt {
								copy(mark, end)
							}
						}
						lo += size
					}
					if !kerneltest.SameBits(whole, pieces) || !kerneltest.SameBits(tail, end) {
						t.Error("pieces have other bits than the whole")
					}
					again := slices.Clone(in)
					Conv(again[markAt*stride:], n-markAt, stride, channels, w, mark, ld, taps, nil, 0)
					if !kerneltest.SameBits(again[markAt*stride:], whole[markAt*stride:]) {
						t.Error("from the mark on rows have other bits")
					}
				})
			}
		}
	})
}

func TestGatesDecayAndOpen(t *testing.T) {
	decay, beta := []float32{0, 30, -200, 200}, []float32{0, 3, -200, 200}
	Gates(decay, beta, []float32{-1, -0.5, -2, -3}, []float32{0, 1, 0, 0})
	for i, want := range []float64{0.5, math.Exp(-15.5), 1, 0} {
		if !kerneltest.Near(decay[i], want, 1e-6) {
			t.Errorf("decay %d is %v, want %v", i, decay[i], want)
		}
	}
	for i, want := range []float64{0.5, 1 / (1 + math.Exp(-3)), 0, 1} {
		if !kerneltest.Near(beta[i], want, 1e-6) {
			t.Errorf("beta %d is %v, want %v", i, beta[i], want)
		}
	}
}

func TestUpdatesAllocateNothing(t *testing.T) {
	_, tokens := example(rand.New(rand.NewPCG(7, 8)), 16, 3)
	state := make([]float32, 16*Tile)
	x, w, tail := make([]float32, 64), make([]float32, 64), make([]float32, 48)
	if n := testing.AllocsPerRun(20, func() {
		Update(state, &tokens)
		Conv(x, 4, 16, 16, w, tail, 16, 4, nil, 0)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
