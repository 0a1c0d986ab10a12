package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// kvBlock is t random vectors as values and as keys in both cached forms, and
// what they are exactly. Their groups stand in any order; places without a vector hold no numbers.
type kvBlock struct {
	at            []int32
	half, keyHalf []uint16
	code, keyCode []int8
	scale         []float32
	exactHalf     []float64
	exactCodes    []float64
}

func randomKV(r *rand.Rand, t, d int) kvBlock {
	groups := (t + KeyGroup - 1) / KeyGroup
	n := groups * KeyGroup
	b := kvBlock{
		half: make([]uint16, n*d), keyHalf: make([]uint16, n*d),
		code: make([]int8, n*d), keyCode: make([]int8, n*d),
		scale:     make([]float32, n),
		exactHalf: make([]float64, t*d), exactCodes: make([]float64, t*d),
	}
	for _, g := range r.Perm(groups) {
		b.at = append(b.at, int32(g*KeyGroup))
	}
	for i := range b.keyHalf {
		b.half[i], b.keyHalf[i] = 0x7e00, 0x7e00
	}
	for j := range b.scale {
		b.scale[j] = float32(math.NaN())
	}
	for j := range t {
		row := kerneltest.RandomVector(r, d)
		group := int(b.at[j/KeyGroup])
		at := group + j%KeyGroup
		b.scale[at] = QuantizeQ8(b.code[at*d:(at+1)*d], row)
		if s := StoreKeyQ8(b.keyCode[group*d:], j%KeyGroup, row); s != b.scale[at] {
			panic(fmt.Sprintf("scale %v as a key, %v as a value", s, b.scale[at]))
		}
		vector.F32ToF16(b.half[at*d:], row)
		StoreKeyF16(b.keyHalf[group*d:], j%KeyGroup, row)
		for c := range d {
			b.exactHalf[j*d+c] = float64(vector.FromF16(b.half[at*d+c]))
			b.exactCodes[j*d+c] = float64(b.scale[at]) * float64(b.code[at*d+c])
		}
	}
	return b
}

func TestScoresAndAccumulationAgreeWithFloat64(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, d := range []int{1, 3, 7, 8, 16, 20, 32, 40, 48, 64, 72, 128, 256} {
			for _, n := range []int{1, 2, 3, 4, 5, 7, 16, 33} {
				for _, g := range []int{1, 2, 3, 4, 5, 8, 9} {
					ld := cpu.RoundUp(n, KeyGroup) + 3
					q, kv := kerneltest.RandomVector(r, g*d), randomKV(r, n, d)
					p := kerneltest.RandomVector(r, g*ld)
					before := kerneltest.RandomVector(r, g*d)
					for _, form := range []string{"F16", "Q8"} {
						exact := kv.exactHalf
						scores, check := kerneltest.Guarded(t, (g-1)*ld+cpu.RoundUp(n, KeyGroup))
						for i := range scores {
							scores[i] = kerneltest.Canary
						}
						acc, checkAcc := kerneltest.Guarded(t, g*d)
						copy(acc, before)
						if form == "F16" {
							ScoresF16(scores, ld, q, kv.keyHalf, kv.at, g, n, d, wild[uint16](kv.at))
							AccumF16(acc, p, ld, kv.half, kv.at, g, n, d, wild[uint16](kv.at))
						} else {
							exact = kv.exactCodes
							ScoresQ8(scores, ld, q, kv.keyCode, kv.scale, kv.at, g, n, d, wild[int8](kv.at))
							AccumQ8(acc, p, ld, kv.code, kv.scale, kv.at, g, n, d, wild[int8](kv.at))
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
								if !kerneltest.Near(scores[i*ld+j], want, 1e-6*l1) {
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
								if !kerneltest.Near(acc[i*d+c], want, 2e-6*l1) {
									t.Fatalf("%s g=%d t=%d d=%d: acc[%d][%d] = %v, want %v", form, g, n, d, i, c, acc[i*d+c], want)
								}
							}
							for j := cpu.RoundUp(n, KeyGroup); i < g-1 && j < ld; j++ {
								if scores[i*ld+j] != kerneltest.Canary {
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
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		const n, ld, g = 23, 24, 7
		for _, d := range []int{8, 24, 64, 128} {
			q, kv, p := kerneltest.RandomVector(r, g*d), randomKV(r, n, d), kerneltest.RandomVector(r, g*ld)
			type result struct{ scores, acc []float32 }
			run := func(form string, lo, hi int) result {
				o := result{make([]float32, (hi-lo)*ld), make([]float32, (hi-lo)*d)}
				if form == "F16" {
					ScoresF16(o.scores, ld, q[lo*d:], kv.keyHalf, kv.at, hi-lo, n, d, Ahead[uint16]{})
					AccumF16(o.acc, p[lo*ld:], ld, kv.half, kv.at, hi-lo, n, d, Ahead[uint16]{})
				} else {
					ScoresQ8(o.scores, ld, q[lo*d:], kv.keyCode, kv.scale, kv.at, hi-lo, n, d, Ahead[int8]{})
					AccumQ8(o.acc, p[lo*ld:], ld, kv.code, kv.scale, kv.at, hi-lo, n, d, Ahead[int8]{})
				}
				soft, seen := make([]Softmax, hi-lo), make([]int32, hi-lo)
				for i := range soft {
					soft[i], seen[i] = NewSoftmax(), int32(n-(lo+i)%3)
				}
				SoftmaxBlock(soft, o.scores, ld, seen, o.acc, d)
				return o
			}
			for _, form := range []string{"F16", "Q8"} {
				for i := range g {
					alone := run(form, i, i+1)
					for hi := i + 1; hi <= g; hi++ {
						group := run(form, i, hi)
						if m := n - i%3; !kerneltest.SameBits(alone.scores[:m], group.scores[:m]) || !kerneltest.SameBits(alone.acc, group.acc[:d]) {
							t.Fatalf("%s d=%d: query %d differs in a group of %d", form, d, i, hi-i)
						}
					}
				}
				whole, cut := make([]float32, ld), make([]float32, ld)
				if form == "F16" {
					ScoresF16(whole, ld, q, kv.keyHalf, kv.at, 1, n, d, Ahead[uint16]{})
					ScoresF16(cut, ld, q, kv.keyHalf, kv.at[:1], 1, KeyGroup, d, Ahead[uint16]{})
					ScoresF16(cut[KeyGroup:], ld, q, kv.keyHalf, kv.at[1:], 1, n-KeyGroup, d, Ahead[uint16]{})
				} else {
					ScoresQ8(whole, ld, q, kv.keyCode, kv.scale, kv.at, 1, n, d, Ahead[int8]{})
					ScoresQ8(cut, ld, q, kv.keyCode, kv.scale, kv.at[:1], 1, KeyGroup, d, Ahead[int8]{})
					ScoresQ8(cut[KeyGroup:], ld, q, kv.keyCode, kv.scale, kv.at[1:], 1, n-KeyGroup, d, Ahead[int8]{})
				}
				if !kerneltest.SameBits(cut[:n], whole[:n]) {
					t.Fatalf("%s d=%d: scores differ when cut", form, d)
				}
			}
		}
	})
}

// eights are the groups of n vectors that stand one after another.
func eights(n int) (at []int32) {
	for i := 0; i < n; i += KeyGroup {
		at = append(at, int32(i))
	}
	return at
}

func TestOnlineSoftmaxEqualsTheSoftmaxOfAllBlocks(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		const d = 16
		for _, sizes := range [][]int{{1}, {5, 3}, {16, 16, 7}, {1, 1, 1, 40}} {
			s := NewSoftmax()
			acc := make([]float32, d)
			var scores []float64
			var values [][]float32
			for _, n := range sizes {
				block, kv := kerneltest.RandomVector(r, n), make([]uint16, n*d)
				for i := range block {
					block[i] *= 20
					scores = append(scores, float64(block[i]))
					v := kerneltest.RandomVector(r, d)
					vector.F32ToF16(kv[i*d:], v)
					for j, h := range kv[i*d : (i+1)*d] {
						v[j] = vector.FromF16(h)
					}
					values = append(values, v)
				}
				block = append(block, make([]float32, cpu.RoundUp(n, KeyGroup)-n)...)
				for i := n; i < len(block); i++ {
					block[i] = float32(math.NaN()) // beyond the block: never looked at
				}
				soft := []Softmax{s}
				SoftmaxBlock(soft, block, len(block), []int32{int32(n)}, acc, d)
				s = soft[0]
				AccumF16(acc, block, n, kv, eights(n), 1, n, d, Ahead[uint16]{})
			}
			s.Finish(acc, acc)
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
				if !kerneltest.Near(acc[c], want, 3e-6) {
					t.Fatalf("blocks %v: output %d = %v, want %v", sizes, c, acc[c], want)
				}
			}
		}
	})
}

func TestMergedSoftmaxesAreTheSoftmaxOfAllTheirKeys(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(6, 7))
		const d = 20
		for _, parts := range [][]int{{5}, {7, 3}, {0, 9}, {9, 0}, {4, 0, 0, 8, 1}, {64, 64, 64}} {
			whole, merged := NewSoftmax(), NewSoftmax()
			wholeAcc, acc := make([]float32, d), make([]float32, d)
			for _, n := range parts {
				part, partAcc := NewSoftmax(), make([]float32, d)
				scores, values := kerneltest.RandomVector(r, n), kerneltest.RandomVector(r, n*d)
				for i := range scores {
					scores[i] *= 20
				}
				for _, s := range []struct {
					soft *Softmax
					acc  []float32
				}{{&whole, wholeAcc}, {&part, partAcc}} {
					if n == 0 {
						continue
					}
					weights := slices.Clone(scores)
					s.soft.block(weights, s.acc)
					for j, w := range weights {
						vector.Axpy(s.acc, w, values[j*d:(j+1)*d])
					}
				}
				merged.Merge(acc, part, partAcc)
			}
			whole.Finish(wholeAcc, wholeAcc)
			merged.Finish(acc, acc)
			for c := range acc {
				if !kerneltest.Near(acc[c], float64(wholeAcc[c]), 3e-6) {
					t.Errorf("parts of %v: output %d = %v, want %v", parts, c, acc[c], wholeAcc[c])
				}
			}
		}
	})
}

func TestNaNInOnePartMakesTheMergeNaN(t *testing.T) {
	nan := float32(math.NaN())
	for _, parts := range [][2]Softmax{
		{{Max: 1, Sum: 2}, {Max: float32(math.Inf(-1)), Sum: nan}}, {{Max: float32(math.Inf(-1)), Sum: nan}, {Max: 1, Sum: 2}}, {{Max: 1, Sum: nan}, {Max: 3, Sum: 2}},
	} {
		s, acc := parts[0], []float32{1}
		s.Merge(acc, parts[1], []float32{1})
		if s.Finish(acc, acc); acc[0] == acc[0] {
			t.Errorf("%v and %v make %v", parts[0], parts[1], acc[0])
		}
	}
}

// wild is to ask for what is nowhere: it must change nothing.
func wild[T int8 | uint16](at []int32) Ahead[T] {
	far := make([]int32, len(at))
	for i := range far {
		far[i] = int32(1-i%2*2) << (20 + i%8)
	}
	return Ahead[T]{make([]T, 1), far}
}

func TestAttentionAllocatesNothing(t *testing.T) {
	sweep.NoEmulator(t)
	r := rand.New(rand.NewPCG(7, 8))
	const g, n, d = 3, 16, 64
	q, kv := kerneltest.RandomVector(r, g*d), randomKV(r, n, d)
	scores, acc, soft := make([]float32, g*n), make([]float32, g*d), make([]Softmax, g)
	kerneltest.OnEachISA(t, func(t *testing.T) {
		if a := testing.AllocsPerRun(10, func() {
			ScoresF16(scores, n, q, kv.keyHalf, kv.at, g, n, d, Ahead[uint16]{})
			ScoresQ8(scores, n, q, kv.keyCode, kv.scale, kv.at, g, n, d, Ahead[int8]{})
			SoftmaxBlock(soft, scores, n, []int32{16, 0, 7}, acc, d)
			AccumF16(acc, scores, n, kv.half, kv.at, g, n, d, Ahead[uint16]{})
			AccumQ8(acc, scores, n, kv.code, kv.scale, kv.at, g, n, d, Ahead[int8]{})
			soft[0].Finish(acc[:d], acc[:d])
		}); a != 0 {
			t.Errorf("%v allocations, want 0", a)
		}
	})
}

func BenchmarkAttend(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, shape := range []struct{ d, n, g int }{{32, 32, 2}, {32, 40, 2}, {32, 64, 2}, {32, 64, 32}, {64, 64, 4}, {128, 64, 1}, {128, 64, 4}, {128, 64, 32}} {
		n, d, g := shape.n, shape.d, shape.g
		kv := randomKV(r, n, d)
		q, scores, acc := kerneltest.RandomVector(r, g*d), make([]float32, g*n), make([]float32, g*d)
		soft, seen := make([]Softmax, g), slices.Repeat([]int32{int32(n)}, g)
		for _, part := range []struct {
			name string
			f    func()
		}{
			{"ScoresF16", func() { ScoresF16(scores, n, q, kv.keyHalf, kv.at, g, n, d, Ahead[uint16]{}) }},
			{"ScoresQ8", func() { ScoresQ8(scores, n, q, kv.keyCode, kv.scale, kv.at, g, n, d, Ahead[int8]{}) }},
			{"Softmax", func() { SoftmaxBlock(soft, scores, n, seen, acc, d) }},
			{"AccumF16", func() { AccumF16(acc, scores, n, kv.half, kv.at, g, n, d, Ahead[uint16]{}) }},
			{"AccumQ8", func() { AccumQ8(acc, scores, n, kv.code, kv.scale, kv.at, g, n, d, Ahead[int8]{}) }},
		} {
			b.Run(fmt.Sprintf("%v/d=%d/keys=%d/rows=%d/%s", cpu.Active(), d, n, g, part.name), func(b *testing.B) {
				for b.Loop() {
					part.f()
				}
				b.ReportMetric(float64(g*n*d)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
			})
		}
	}
}
