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

	// Of 4 bits, if d is a multiple of 32.
	nibbles, keyNibbles []byte
	scale4, keyScale4   []uint16
	exactNibbles        []float64
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
	if d%PartQ4 == 0 {
		b.nibbles, b.keyNibbles, b.exactNibbles = make([]byte, n*d/2), make([]byte, n*d/2), make([]float64, t*d)
		b.scale4 = slices.Repeat([]uint16{notANumber}, n*d/PartQ4)
		b.keyScale4 = slices.Clone(b.scale4)
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
		if d%PartQ4 == 0 {
			b.storeNibbles(j, group, row)
		}
	}
	return b
}

// storeNibbles stores vector j, of that group, in 4 bits.
func (b *kvBlock) storeNibbles(j, group int, row []float32) {
	d, in := len(row), j%KeyGroup
	at := group + in
	StoreKeyQ4(b.keyNibbles[group*d/2:], b.keyScale4[group*d/PartQ4:], in, row)
	StoreValueQ4(b.nibbles[at*d/2:], b.scale4[at*d/PartQ4:], row)
	key, value := make([]float32, d), make([]float32, d)
	LoadKeyQ4(key, b.keyNibbles[group*d/2:], b.keyScale4[group*d/PartQ4:], in)
	LoadValueQ4(value, b.nibbles[at*d/2:], b.scale4[at*d/PartQ4:])
	if !slices.Equal(key, value) {
		panic(fmt.Sprintf("%v as a key, %v as a value", key, value))
	}
	for c, x := range key {
		b.exactNibbles[j*d+c] = float64(x)
	}
}

// forms are the formats that vectors of d have.
func forms(d int) []string { return []string{"F16", "Q8", "Q4"}[:2+max(0, 1-d%PartQ4)] }

// scores and accum call the functions of a form. Queries are packed for the form that wants it.
func (b *kvBlock) scores(form string, dst []float32, ld int, q []float32, at []int32, g, t, d int) {
	switch form {
	case "F16":
		ScoresF16(dst, ld, q, b.keyHalf, at, g, t, d, wild[uint16](at))
	case "Q8":
		ScoresQ8(dst, ld, q, b.keyCode, b.scale, at, g, t, d, wild[int8](at))
	default:
		packed := make([]byte, g*QueryBytesQ4(d))
		PackQueriesQ4(packed, q[:g*d])
		ScoresQ4(dst, ld, packed, b.keyNibbles, b.keyScale4, at, g, t, d, wild[byte](at))
	}
}

func (b *kvBlock) accum(form string, acc, p []float32, ld int, at []int32, g, t, d int) {
	switch form {
	case "F16":
		AccumF16(acc, p, ld, b.half, at, g, t, d, wild[uint16](at))
	case "Q8":
		AccumQ8(acc, p, ld, b.code, b.scale, at, g, t, d, wild[int8](at))
	default:
		AccumQ4(acc, p, ld, b.nibbles, b.scale4, at, g, t, d, wild[byte](at))
	}
}

// exact gives the elements of all vectors, and queries as a form has them.
func (b *kvBlock) exact(form string, q []float32) (vectors []float64, queries []float32) {
	switch form {
	case "F16":
		return b.exactHalf, q
	case "Q8":
		return b.exactCodes, q
	}
	queries = slices.Clone(q)
	for at := 0; at < len(q); at += PartQ4 {
		var codes [PartQ4]int8
		scale := QuantizeQ8(codes[:], q[at:at+PartQ4])
		for i, c := range codes {
			queries[at+i] = scale * float32(c)
		}
	}
	return b.exactNibbles, queries
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
					for _, form := range forms(d) {
						exact, queries := kv.exact(form, q)
						scores, check := kerneltest.Guarded(t, (g-1)*ld+cpu.RoundUp(n, KeyGroup))
						for i := range scores {
							scores[i] = kerneltest.Canary
						}
						acc, checkAcc := kerneltest.Guarded(t, g*d)
						copy(acc, before)
						kv.scores(form, scores, ld, q, kv.at, g, n, d)
						kv.accum(form, acc, p, ld, kv.at, g, n, d)
						check()
						checkAcc()
						for i := range g {
							for j := range n {
								var want, l1 float64
								for c := range d {
									v := float64(queries[i*d+c]) * exact[j*d+c]
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
				kv.scores(form, o.scores, ld, q[lo*d:], kv.at, hi-lo, n, d)
				kv.accum(form, o.acc, p[lo*ld:], ld, kv.at, hi-lo, n, d)
				soft, seen := make([]Softmax, hi-lo), make([]int32, hi-lo)
				for i := range soft {
					soft[i], seen[i] = NewSoftmax(), int32(n-(lo+i)%3)
				}
				SoftmaxBlock(soft, o.scores, ld, seen, o.acc, d)
				return o
			}
			for _, form := range forms(d) {
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
				kv.scores(form, whole, ld, q, kv.at, 1, n, d)
				kv.scores(form, cut, ld, q, kv.at[:1], 1, KeyGroup, d)
				kv.scores(form, cut[KeyGroup:], ld, q, kv.at[1:], 1, n-KeyGroup, d)
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
func wild[T int8 | uint8 | uint16](at []int32) Ahead[T] {
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
	packed := make([]byte, g*QueryBytesQ4(d))
	kerneltest.OnEachISA(t, func(t *testing.T) {
		if a := testing.AllocsPerRun(10, func() {
			ScoresF16(scores, n, q, kv.keyHalf, kv.at, g, n, d, Ahead[uint16]{})
			ScoresQ8(scores, n, q, kv.keyCode, kv.scale, kv.at, g, n, d, Ahead[int8]{})
			PackQueriesQ4(packed, q)
			ScoresQ4(scores, n, packed, kv.keyNibbles, kv.keyScale4, kv.at, g, n, d, Ahead[byte]{})
			SoftmaxBlock(soft, scores, n, []int32{16, 0, 7}, acc, d)
			AccumQ4(acc, scores, n, kv.nibbles, kv.scale4, kv.at, g, n, d, Ahead[byte]{})
			AccumF16(acc, scores, n, kv.half, kv.at, g, n, d, Ahead[uint16]{})
			AccumQ8(acc, scores, n, kv.code, kv.scale, kv.at, g, n, d, Ahead[int8]{})
			soft[0].Finish(acc[:d], acc[:d])
		}); a != 0 {
			t.Errorf("%v allocations, want 0", a)
		}
	})
}

// Integer sums are exact, and products of scales and codes too, so that all with fused additions give the same bits.
func TestKeysAndValuesOf4BitsHaveTheSameBitsWithAllVectorInstructions(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	type result struct{ scores, acc []float32 }
	for _, d := range []int{32, 64, 96, 128, 256} {
		for _, n := range []int{1, 5, 8, 23} {
			for _, g := range []int{1, 3, 6} {
				ld := cpu.RoundUp(n, KeyGroup)
				q, kv, p := kerneltest.RandomVector(r, g*d), randomKV(r, n, d), kerneltest.RandomVector(r, g*ld)
				results := map[bool]result{}
				kerneltest.OnEachISA(t, func(t *testing.T) {
					o := result{make([]float32, g*ld), make([]float32, g*d)}
					kv.scores("Q4", o.scores, ld, q, kv.at, g, n, d)
					kv.accum("Q4", o.acc, p, ld, kv.at, g, n, d)
					vectors := cpu.Active() != cpu.Generic // which multiply and add at once
					if was, ok := results[vectors]; ok {
						for i := range g {
							if !kerneltest.SameBits(o.scores[i*ld:i*ld+n], was.scores[i*ld:i*ld+n]) {
								t.Fatalf("d=%d t=%d g=%d: other scores", d, n, g)
							}
						}
						if !kerneltest.SameBits(o.acc, was.acc) {
							t.Fatalf("d=%d t=%d g=%d: other sums", d, n, g)
						}
					}
					results[vectors] = o
				})
			}
		}
	}
}

func TestWhatIsNotFiniteIsNoNumberIn4Bits(t *testing.T) {
	const d = PartQ4
	group, scales, back := make([]byte, KeyGroup*d/2), make([]uint16, KeyGroup), make([]float32, d)
	for name, c := range map[string]struct {
		x     float32
		check func(y float32) bool
	}{
		"NaN":      {float32(math.NaN()), func(y float32) bool { return y != y }},
		"infinity": {float32(math.Inf(-1)), func(y float32) bool { return y != y }},
		"huge":     {1e30, func(y float32) bool { return y > 4e5 && y < 1e6 }},
		"tiny":     {1e-30, func(y float32) bool { return y == 0 }},
	} {
		x := make([]float32, d)
		x[5] = c.x
		StoreKeyQ4(group, scales, 3, x)
		LoadKeyQ4(back, group, scales, 3)
		if !c.check(back[5]) {
			t.Errorf("%s became %v", name, back[5])
		}
	}
}

// errorQ4 returns the squared error of 32 elements in 4 bits, and what it is if the element of most weight is -8 times the
// scale.
func errorQ4(x []float32) (own, plain float64) {
	var codes [PartQ4]int8
	var most float64
	scale := float64(vector.FromF16(quantizeQ4(&codes, x)))
	for _, v := range x {
		if math.Abs(float64(v)) > math.Abs(most) {
			most = float64(v)
		}
	}
	for i, v := range x {
		d := float64(v) - scale*float64(codes[i])
		c := max(-8, min(7, math.RoundToEven(float64(v)/(most/-8))))
		e := float64(v) - most/-8*c
		own, plain = own+d*d, plain+e*e
	}
	return own, plain
}

func TestScalesOf4BitsLeaveTheLeastError(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var all, allPlain float64
	for _, size := range []float32{1, 1e-3, 1e3} {
		for range 200 {
			x := kerneltest.RandomVector(r, PartQ4)
			vector.Scale(x, x, size)
			own, plain := errorQ4(x)
			if own > plain*1.01 { // scales are float16
				t.Errorf("%v: a squared error of %v where the largest element's scale leaves %v", x, own, plain)
			}
			all, allPlain = all+own/float64(size*size), allPlain+plain/float64(size*size)
		}
	}
	if all > 0.95*allPlain {
		t.Errorf("a squared error of %v, and %v without a choice of scales", all, allPlain)
	}
	// One element is exact, and so are the codes themselves.
	x := make([]float32, PartQ4)
	for i := range x {
		x[i] = 0.25 * float32(i%16-8)
	}
	if own, _ := errorQ4(x); own != 0 {
		t.Errorf("codes times a scale have an error of %v", own)
	}
}

func BenchmarkStoreQ4(b *testing.B) {
	x := kerneltest.RandomVector(rand.New(rand.NewPCG(1, 2)), 64*PartQ4)
	value, scales := make([]byte, 64*PartQ4/2), make([]uint16, 64)
	for b.Loop() {
		StoreValueQ4(value, scales, x)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/part")
}

func BenchmarkAttend(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, shape := range []struct{ d, n, g int }{{32, 32, 2}, {32, 40, 2}, {32, 64, 2}, {32, 64, 32}, {64, 64, 4}, {128, 64, 1}, {128, 64, 4}, {128, 64, 32}} {
		n, d, g := shape.n, shape.d, shape.g
		kv := randomKV(r, n, d)
		q, scores, acc := kerneltest.RandomVector(r, g*d), make([]float32, g*n), make([]float32, g*d)
		soft, seen := make([]Softmax, g), slices.Repeat([]int32{int32(n)}, g)
		packed := make([]byte, g*QueryBytesQ4(d))
		PackQueriesQ4(packed, q)
		for _, part := range []struct {
			name string
			f    func()
		}{
			{"ScoresF16", func() { ScoresF16(scores, n, q, kv.keyHalf, kv.at, g, n, d, Ahead[uint16]{}) }},
			{"ScoresQ8", func() { ScoresQ8(scores, n, q, kv.keyCode, kv.scale, kv.at, g, n, d, Ahead[int8]{}) }},
			{"ScoresQ4", func() {
				ScoresQ4(scores, n, packed, kv.keyNibbles, kv.keyScale4, kv.at, g, n, d, Ahead[byte]{})
			}},
			{"Softmax", func() { SoftmaxBlock(soft, scores, n, seen, acc, d) }},
			{"AccumF16", func() { AccumF16(acc, scores, n, kv.half, kv.at, g, n, d, Ahead[uint16]{}) }},
			{"AccumQ8", func() { AccumQ8(acc, scores, n, kv.code, kv.scale, kv.at, g, n, d, Ahead[int8]{}) }},
			{"AccumQ4", func() { AccumQ4(acc, scores, n, kv.nibbles, kv.scale4, kv.at, g, n, d, Ahead[byte]{}) }},
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

func TestATileGivesTheBitsOfSingleQueries(t *testing.T) {
	kerneltest.OnEachISA(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		var tile Tile // one for all, so that what others left in it shows
		groups := []int{1, 2, 3, 4, 5, 6, 11, 12, 13, 32, 97}
		if cpu.Active() == cpu.Generic && sweep.Quick() {
			groups = []int{1, 5, 32} // one loop for all
		}
		for _, d := range []int{8, 16, 24, 40, 64, 72, 80, 128, 256} {
			for _, n := range []int{1, 7, 8, 9, 24, 40, 55, 64, 100} {
				for _, g := range groups {
					checkTile(t, r, &tile, g, n, d)
				}
			}
		}
	})
}

// checkTile checks that a tile of g queries has the scores and sums that single queries have.
func checkTile(t *testing.T, r *rand.Rand, tile *Tile, g, n, d int) {
	ld, kv := cpu.RoundUp(n, KeyGroup)+3, randomKV(r, n, d)
	q, p, before := kerneltest.RandomVector(r, g*d), kerneltest.RandomVector(r, g*ld), kerneltest.RandomVector(r, g*d)
	want, wantAcc := make([]float32, g*ld), slices.Clone(before)
	for _, form := range []string{"F16", "Q8"} {
		copy(wantAcc, before)
		for i := range g {
			kv.scores(form, want[i*ld:(i+1)*ld], ld, q[i*d:], kv.at, 1, n, d)
			kv.accum(form, wantAcc[i*d:(i+1)*d], p[i*ld:], ld, kv.at, 1, n, d)
		}
		got, check := kerneltest.Guarded(t, (g-1)*ld+cpu.RoundUp(n, KeyGroup))
		acc, checkAcc := kerneltest.Guarded(t, g*d)
		copy(acc, before)
		for i := range got {
			got[i] = kerneltest.Canary
		}
		if form == "F16" {
			tile.KeysF16(kv.keyHalf, kv.at, n, d)
			tile.Scores(got, ld, q, g)
			tile.ValuesF16(kv.half, kv.at, n, d)
		} else {
			tile.KeysQ8(kv.keyCode, kv.scale, kv.at, n, d)
			tile.Scores(got, ld, q, g)
			tile.ValuesQ8(kv.code, kv.scale, kv.at, n, d)
		}
		tile.Accum(acc, p, ld, g)
		check()
		checkAcc()
		same := func(a, b float32) bool {
			return a == b || !haveTiles() && kerneltest.Near(a, float64(b), 1e-5*float64(d+n))
		}
		for i := range g {
			for j := range n {
				if !same(got[i*ld+j], want[i*ld+j]) {
					t.Fatalf("%s g=%d t=%d d=%d: score[%d][%d] = %v, of one query %v", form, g, n, d, i, j, got[i*ld+j], want[i*ld+j])
				}
			}
			for j := cpu.RoundUp(n, KeyGroup); i < g-1 && j < ld; j++ {
				if got[i*ld+j] != kerneltest.Canary {
					t.Fatalf("%s g=%d t=%d d=%d: wrote between rows", form, g, n, d)
				}
			}
			for c := range d {
				if !same(acc[i*d+c], wantAcc[i*d+c]) {
					t.Fatalf("%s g=%d t=%d d=%d: acc[%d][%d] = %v, of one query %v", form, g, n, d, i, c, acc[i*d+c], wantAcc[i*d+c])
				}
			}
		}
	}
}

func TestTheSoftmaxOfABlockHasTheSameBitsWithAllVectorInstructions(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	const rows, d, ld = 5, 16, 80
	for n := int32(1); n <= 72; n++ {
		blocks := [2][]float32{kerneltest.RandomVector(r, rows*ld), kerneltest.RandomVector(r, rows*ld)}
		counts := []int32{n, n, max(0, n-9), 0, n}
		results := map[bool][]float32{}
		kerneltest.OnEachISA(t, func(t *testing.T) {
			soft, acc, got := slices.Repeat([]Softmax{NewSoftmax()}, rows), make([]float32, rows*d), []float32(nil)
			for _, block := range blocks {
				scores := slices.Clone(block)
				SoftmaxBlock(soft, scores, ld, counts, acc, d)
				for i, n := range counts {
					got = append(got, scores[i*ld:i*ld+int(n)]...)
				}
				for i := range acc {
					acc[i]++
				}
			}
			for _, s := range soft {
				got = append(got, s.Max, s.Sum)
			}
			got = append(got, acc...)
			vectors := cpu.Active() != cpu.Generic // which multiply and add at once
			if was, ok := results[vectors]; ok && !kerneltest.SameBits(got, was) {
				t.Fatalf("n=%d: weights, sums or accumulators differ", n)
			}
			results[vectors] = got
		})
	}
}
