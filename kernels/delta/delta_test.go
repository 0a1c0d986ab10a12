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
func example(r *rand.Rand, width, n int) (x []float32, t Tokens) {
	stride := 3*width + 2
	x = kerneltest.RandomVector(r, n*stride+13)
	t = Tokens{N: n, Q: x, K: x[width:], V: x[2*width:], Stride: stride, Decay: x[stride-2:], Beta: x[stride-1:], Gates: stride}
	for i := range n {
		vector.L2Norm(x[i*stride:][:width], 1, 1e-6)
		vector.L2Norm(x[i*stride+width:][:width], 1, 1e-6)
		t.Decay[i*stride], t.Beta[i*stride] = 1-r.Float32()/4, r.Float32()
		if i%13 == 7 {
			t.Decay[i*stride] = 0 // forgets all
		}
	}
	return x, t
}

// reference is the definition of Update in float64, from an empty state on: outputs.
func reference(width int, t Tokens) (out []float64) {
	s := make([]float64, width*width)
	for n := range t.N {
		q, k, v := t.Q[n*t.Stride:], t.K[n*t.Stride:], t.V[n*t.Stride:]
		decay, beta := float64(t.Decay[n*t.Gates]), float64(t.Beta[n*t.Gates])
		for c := range width {
			u, o := 0.0, 0.0
			for i := range width {
				s[i*width+c] *= decay
				u += float64(k[i]) * s[i*width+c]
			}
			for i := range width {
				s[i*width+c] += float64(k[i]) * beta * (float64(v[c]) - u)
				o += float64(q[i]) * s[i*width+c]
			}
			out = append(out, o)
		}
	}
	return out
}

func TestOutputsAgreeWithTheDefinition(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, width := range []int{16, 32, 48, 80, 128} {
			for _, n := range []int{1, 2, 7, 16, 17, 100} {
				_, tokens := example(r, width, n)
				want := reference(width, tokens)
				state, check := kerneltest.Guarded(t, Size(width))
				clear(state)
				scratch, checkScratch := kerneltest.Guarded(t, Scratch(width))
				Update(state, width, &tokens, scratch)
				check()
				checkScratch()
				for i, x := range want {
					if got := tokens.V[i/width*tokens.Stride+i%width]; !kerneltest.Near(got, x, 2e-5) {
						t.Fatalf("width %d, %d tokens: output %d of token %d is %v, want %v", width, n, i%width, i/width, got, x)
					}
				}
			}
		}
	})
}

// Decays that fade within a chunk, to what float32 holds with fewer bits or not at all.
func TestHeadsThatForgetFastHaveNoSubnormalNumbers(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		const width, n = 32, 75
		r := rand.New(rand.NewPCG(5, 6))
		_, tokens := example(r, width, n)
		for i := range n {
			tokens.Decay[i*tokens.Gates] = []float32{1e-9, 3e-5, 0.02, 0.9}[i/20]
		}
		want, state, scratch := reference(width, tokens), make([]float32, Size(width)), make([]float32, Scratch(width))
		for at := range n {
			from := at * tokens.Stride
			Update(state, width, &Tokens{N: 1, Position: at, Q: tokens.Q[from:], K: tokens.K[from:], V: tokens.V[from:], Decay: tokens.Decay[from:], Beta: tokens.Beta[from:]}, scratch)
			for i, x := range state {
				if abs := math.Abs(float64(x)); abs > 0 && abs < 0x1p-126 {
					t.Fatalf("number %d of the state after %d tokens is %v", i, at+1, x)
				}
			}
		}
		for i, x := range want {
			if got := tokens.V[i/width*tokens.Stride+i%width]; !kerneltest.Near(got, x, 2e-5) {
				t.Fatalf("output %d of token %d is %v, want %v", i%width, i/width, got, x)
			}
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	const width, n = 128, 4 * Chunk
	for _, decay := range []float32{0.95, 1e-9} {
		b.Run(fmt.Sprintf("decay %v", decay), func(b *testing.B) {
			before, tokens := example(rand.New(rand.NewPCG(1, 1)), width, n)
			for i := range n {
				tokens.Decay[i*tokens.Gates] = decay
			}
			x, state, scratch := slices.Clone(before), make([]float32, Size(width)), make([]float32, Scratch(width))
			b.ReportAllocs()
			for b.Loop() {
				copy(before, x) // outputs have taken the place of values
				Update(state, width, &tokens, scratch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/token")
		})
	}
}

func TestTokensInPiecesHaveTheBitsOfAllAtOnce(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		const width, n = 48, 83
		r := rand.New(rand.NewPCG(3, 4))
		before, all := example(r, width, n)
		whole, scratch := slices.Clone(before), make([]float32, Scratch(width))
		pieces := func(x []float32, size func() int) (state []float32) {
			state = make([]float32, Size(width))
			for lo := 0; lo < n; {
				at := x[lo*all.Stride:]
				m := min(n-lo, size())
				Update(state, width, &Tokens{
					N: m, Position: lo, Q: at, K: at[width:], V: at[2*width:], Stride: all.Stride,
					Decay: at[all.Stride-2:], Beta: at[all.Stride-1:], Gates: all.Gates,
				}, scratch)
				lo += m
			}
			return state
		}
		want := pieces(whole, func() int { return n })
		for name, size := range map[string]func() int{
			"one": func() int { return 1 }, "a chunk": func() int { return Chunk }, "any number": func() int { return 1 + r.IntN(40) },
		} {
			parts := slices.Clone(before)
			if got := pieces(parts, size); !kerneltest.SameBits(whole, parts) || !kerneltest.SameBits(want, got) {
				t.Errorf("tokens in pieces of %s have other bits than in one call", name)
			}
		}
	})
}

func TestAConvolutionIsTheSameInPieces(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		for _, taps := range []int{2, 3, 4, MostTaps} {
			silu := taps != 3 // which is as good without
			for _, channels := range []int{5, 16, Channels} {
				t.Run(fmt.Sprintf("%d taps of %d channels", taps, channels), func(t *testing.T) {
					const n = 23
					r := rand.New(rand.NewPCG(uint64(taps), uint64(channels)))
					stride, ld := channels+3, channels+1
					in, w := kerneltest.RandomVector(r, n*stride), kerneltest.RandomVector(r, taps*ld)
					before := kerneltest.RandomVector(r, (taps-1)*ld)
					var bias []float32
					if taps > 3 { // as state spaces have it
						bias = kerneltest.RandomVector(r, channels+1)
					}
					whole, tail := slices.Clone(in), slices.Clone(before)
					Conv(whole, n, stride, channels, w, bias, tail, ld, taps, silu)
					for i := range n {
						for c := range channels {
							sum := 0.0
							if bias != nil {
								sum = float64(bias[c])
							}
							for j := range taps {
								from := i - taps + 1 + j
								x := in[max(0, from)*stride+c]
								if from < 0 {
									x = before[(taps-1+from)*ld+c]
								}
								sum += float64(w[j*ld+c]) * float64(x)
							}
							want := sum
							if silu {
								want /= 1 + math.Exp(-sum)
							}
							if !kerneltest.Near(whole[i*stride+c], want, 1e-5) {
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
							Tail(mark, pieces[lo*stride:], markAt-lo, stride, channels, end, ld, taps)
							Conv(pieces[lo*stride:], size, stride, channels, w, bias, end, ld, taps, silu)
						} else {
							Conv(pieces[lo*stride:], size, stride, channels, w, bias, end, ld, taps, silu)
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
					Conv(again[markAt*stride:], n-markAt, stride, channels, w, bias, mark, ld, taps, silu)
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
	_, tokens := example(rand.New(rand.NewPCG(7, 8)), 16, 20)
	state, scratch := make([]float32, Size(16)), make([]float32, Scratch(16))
	x, w, tail := make([]float32, 64), make([]float32, 64), make([]float32, 48)
	if n := testing.AllocsPerRun(20, func() {
		Update(state, 16, &tokens, scratch)
		Conv(x, 4, 16, 16, w, w, tail, 16, 4, true)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A state that another machine goes on from, and one that it gives back, have the outputs of one that has not been
// away, wherever in a chunk that is.
func TestStatesGoOnFromFlatOnes(t *testing.T) {
	for _, width := range []int{32, 48} {
		for _, at := range []int{0, 1, 15, 16, 21} {
			r := rand.New(rand.NewPCG(4, uint64(at)))
			const n = 40
			x, tokens := example(r, width, n)
			want := reference(width, tokens)
			state, scratch, flat := make([]float32, Size(width)), make([]float32, Scratch(width)), make([]float32, width*width)
			from := tokens
			if from.N = at; at > 0 {
				Update(state, width, &from, scratch)
			}
			Flatten(flat, state, width, at)
			for i := range state { // what is left of another sequence
				state[i] = float32(r.NormFloat64())
			}
			Restore(state, flat, width, at)
			rest := x[at*tokens.Stride:]
			Update(state, width, &Tokens{N: n - at, Position: at, Q: rest, K: rest[width:], V: rest[2*width:], Stride: tokens.Stride,
				Decay: rest[tokens.Stride-2:], Beta: rest[tokens.Stride-1:], Gates: tokens.Gates}, scratch)
			for i, x := range want {
				if got := tokens.V[i/width*tokens.Stride+i%width]; !kerneltest.Near(got, x, 2e-5) {
					t.Fatalf("width %d, flat at %d: output %d of token %d is %v, want %v", width, at, i%width, i/width, got, x)
				}
			}
		}
	}
}
