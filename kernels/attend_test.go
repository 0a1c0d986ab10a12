package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// kvBlock is t random keys or values in both cached forms, and their exact values.
type kvBlock struct {
	half       []uint16
	code       []int8
	scale      []float32
	exactHalf  []float64
	exactCodes []float64
}

func randomKV(r *rand.Rand, t, d int) kvBlock {
	b := kvBlock{make([]uint16, t*d), make([]int8, t*d), make([]float32, t), make([]float64, t*d), make([]float64, t*d)}
	for j := range t {
		row := randomVector(r, d)
		b.scale[j] = QuantizeQ8(b.code[j*d:(j+1)*d], row)
		F32ToF16(b.half[j*d:], row)
		for c := range d {
			b.exactHalf[j*d+c] = float64(f16ToF32(b.half[j*d+c]))
			b.exactCodes[j*d+c] = float64(b.scale[j]) * float64(b.code[j*d+c])
		}
	}
	return b
}

func TestScoresAndAccumulationAgreeWithFloat64(t *testing.T) {
	onEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, d := range []int{1, 3, 7, 8, 16, 20, 32, 40, 48, 64, 72, 128, 256} {
			for _, n := range []int{1, 2, 3, 4, 5, 7, 16, 33} {
				for _, g := range []int{1, 2, 3, 4, 5, 8, 9} {
					ld := n + 3
					q, kv := randomVector(r, g*d), randomKV(r, n, d)
					p := randomVector(r, g*ld)
					before := randomVector(r, g*d)
					for _, form := range []string{"F16", "Q8"} {
						exact := kv.exactHalf
						scores, check := guarded(t, (g-1)*ld+n)
						for i := range scores {
							scores[i] = linearCanary
						}
						acc, checkAcc := guarded(t, g*d)
						copy(acc, before)
						if form == "F16" {
							ScoresF16(scores, ld, q, kv.half, g, n, d)
							AccumF16(acc, p, ld, kv.half, g, n, d)
						} else {
							exact = kv.exactCodes
							ScoresQ8(scores, ld, q, kv.code, kv.scale, g, n, d)
							AccumQ8(acc, p, ld, kv.code, kv.scale, g, n, d)
						}
						check()
						checkAcc()
						for i := range g {
							for j := range n {
								var want, l1 float64
								for c := range d {
									v := float64(q[i*d+c]) * exact[j*d+c]
									want, l1 = want+v, l1+math.Abs(v)
								}
								if !near(scores[i*ld+j], want, 1e-6*l1) {
									t.Fatalf("%s g=%d t=%d d=%d: score[%d][%d] = %v, want %v", form, g, n, d, i, j, scores[i*ld+j], want)
								}
							}
							for c := range d {
								want := float64(before[i*d+c])
								l1 := math.Abs(want)
								for j := range n {
									v := float64(p[i*ld+j]) * exact[j*d+c]
									want, l1 = want+v, l1+math.Abs(v)
								}
								if !near(acc[i*d+c], want, 2e-6*l1) {
									t.Fatalf("%s g=%d t=%d d=%d: acc[%d][%d] = %v, want %v", form, g, n, d, i, c, acc[i*d+c], want)
								}
							}
							for j := n; i < g-1 && j < ld; j++ {
								if scores[i*ld+j] != linearCanary {
									t.Fatalf("%s g=%d t=%d d=%d: wrote between rows", form, g, n, d)
								}
							}
						}
					}
				}
			}
		}
	})
}

func TestAQuerysAttentionDoesNotDependOnItsGroupOrBlockCut(t *testing.T) {
	onEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		const n, g = 23, 7
		for _, d := range []int{8, 24, 64, 128} {
			q, kv, p := randomVector(r, g*d), randomKV(r, n, d), randomVector(r, g*n)
			type result struct{ scores, acc []float32 }
			run := func(form string, lo, hi int) result {
				o := result{make([]float32, (hi-lo)*n), make([]float32, (hi-lo)*d)}
				if form == "F16" {
					ScoresF16(o.scores, n, q[lo*d:], kv.half, hi-lo, n, d)
					AccumF16(o.acc, p[lo*n:], n, kv.half, hi-lo, n, d)
				} else {
					ScoresQ8(o.scores, n, q[lo*d:], kv.code, kv.scale, hi-lo, n, d)
					AccumQ8(o.acc, p[lo*n:], n, kv.code, kv.scale, hi-lo, n, d)
				}
				return o
			}
			for _, form := range []string{"F16", "Q8"} {
				for i := range g {
					alone := run(form, i, i+1)
					for hi := i + 1; hi <= g; hi++ {
						group := run(form, i, hi)
						if !sameBits(alone.scores, group.scores[:n]) || !sameBits(alone.acc, group.acc[:d]) {
							t.Fatalf("%s d=%d: query %d differs in a group of %d", form, d, i, hi-i)
						}
					}
				}
				whole := run(form, 0, 1)
				cut := make([]float32, n)
				for at := 1; at < n; at++ {
					if form == "F16" {
						ScoresF16(cut, n, q, kv.half, 1, at, d)
						ScoresF16(cut[at:], n, q, kv.half[at*d:], 1, n-at, d)
					} else {
						ScoresQ8(cut, n, q, kv.code, kv.scale, 1, at, d)
						ScoresQ8(cut[at:], n, q, kv.code[at*d:], kv.scale[at:], 1, n-at, d)
					}
					if !sameBits(cut, whole.scores) {
						t.Fatalf("%s d=%d: scores differ when cut at %d", form, d, at)
					}
				}
			}
		}
	})
}

func sameBits(a, b []float32) bool {
	for i, v := range a {
		if math.Float32bits(v) != math.Float32bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

func TestOnlineSoftmaxEqualsTheSoftmaxOfAllBlocks(t *testing.T) {
	onEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		const d = 16
		for _, sizes := range [][]int{{1}, {5, 3}, {16, 16, 7}, {1, 1, 1, 40}} {
			s := NewOnlineSoftmax()
			acc := make([]float32, d)
			var scores []float64
			var values [][]float32
			for _, n := range sizes {
				block, kv := randomVector(r, n), make([]uint16, n*d)
				for i := range block {
					block[i] *= 20
					scores = append(scores, float64(block[i]))
					v := randomVector(r, d)
					F32ToF16(kv[i*d:], v)
					F16ToF32(v, kv[i*d:(i+1)*d])
					values = append(values, v)
				}
				s.Block(block, acc)
				AccumF16(acc, block, n, kv, 1, n, d)
				masked := []float32{negInf, negInf}
				s.Block(masked, acc)
				if masked[0] != 0 || masked[1] != 0 {
					t.Fatalf("masked scores weigh %v, want 0", masked)
				}
			}
			s.Finish(acc)
			top, sum := math.Inf(-1), 0.0
			for _, v := range scores {
				top = max(top, v)
			}
			for _, v := range scores {
				sum += math.Exp(v - top)
			}
			for c := range d {
				want := 0.0
				for i, v := range scores {
					want += math.Exp(v-top) / sum * float64(values[i][c])
				}
				if !near(acc[c], want, 3e-6) {
					t.Fatalf("blocks %v: output %d = %v, want %v", sizes, c, acc[c], want)
				}
			}
		}
		empty := NewOnlineSoftmax()
		acc := []float32{1, 2}
		empty.Block([]float32{negInf}, acc)
		empty.Finish(acc)
		if acc[0] != 0 || acc[1] != 0 {
			t.Errorf("nothing visible gives %v, want zeros", acc)
		}
	})
}

func TestAttentionAndVectorsAllocateNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const g, n, d = 3, 16, 64
	q, kv := randomVector(r, g*d), randomKV(r, n, d)
	scores, acc := make([]float32, g*n), make([]float32, g*d)
	onEachISA(t, func(t *testing.T) {
		if a := testing.AllocsPerRun(10, func() {
			ScoresF16(scores, n, q, kv.half, g, n, d)
			ScoresQ8(scores, n, q, kv.code, kv.scale, g, n, d)
			s := NewOnlineSoftmax()
			s.Block(scores[:n], acc[:d])
			AccumF16(acc, scores, n, kv.half, g, n, d)
			AccumQ8(acc, scores, n, kv.code, kv.scale, g, n, d)
			s.Finish(acc)
			RMSNorm(acc, acc, q, 1e-5)
			SwiGLU(acc, acc, q)
			RopePairs(acc, d, q[:d/2], q[d/2:d])
			Softmax(acc, acc)
		}); a != 0 {
			t.Errorf("%v allocations, want 0", a)
		}
	})
}

func BenchmarkAttend(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const n, d = 256, 128
	kv := randomKV(r, n, d)
	for _, g := range []int{1, 4, 8, 64} {
		q, scores, acc := randomVector(r, g*d), make([]float32, g*n), make([]float32, g*d)
		for name, f := range map[string]func(){
			"ScoresF16": func() { ScoresF16(scores, n, q, kv.half, g, n, d) },
			"ScoresQ8":  func() { ScoresQ8(scores, n, q, kv.code, kv.scale, g, n, d) },
			"AccumF16":  func() { AccumF16(acc, scores, n, kv.half, g, n, d) },
			"AccumQ8":   func() { AccumQ8(acc, scores, n, kv.code, kv.scale, g, n, d) },
		} {
			b.Run(fmt.Sprintf("%v/%s/%dx%d/g=%d", active, name, n, d, g), func(b *testing.B) {
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(g*n*d)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
			})
		}
	}
}
