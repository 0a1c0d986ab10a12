package sampling

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/kernels/pool"
)

// gaussian is a row of logits of a plausible shape.
func gaussian(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	row := make([]float32, n)
	for i := range row {
		row[i] = float32(r.NormFloat64() * 3)
	}
	return row
}

// BenchmarkSample draws 32 tokens from a vocabulary of 131072.
func BenchmarkSample(b *testing.B) {
	const rows, vocab = 32, 131072
	for _, c := range []struct {
		name string
		p    Params
	}{
		{"greedy", Params{}},
		{"temperature", Params{Temperature: 0.8}},
		{"top-p", Params{Temperature: 0.8, TopP: 0.95}},
		{"top-p-flat", Params{Temperature: 5, TopP: 0.95}},
		{"top-k", Params{Temperature: 0.8, TopK: 40, TopP: 0.95}},
		{"min-p", Params{Temperature: 0.8, MinP: 0.05}},
		{"typical", Params{Temperature: 0.8, TypicalP: 0.9}},
		{"logprobs", Params{Temperature: 0.8, Logprobs: true, TopLogprobs: 5}},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", c.name, threads), func(b *testing.B) {
				pool := pool.New(threads)
				defer pool.Close()
				draws := NewBatch(pool)
				draws.Reset(rows)
				for i := range rows {
					d := draws.Add(i, gaussian(vocab, uint64(i)))
					d.Params, d.ID, d.Position = c.p, Sampled, i
				}
				b.ReportAllocs()
				for b.Loop() {
					draws.Run()
				}
			})
		}
	}
}
