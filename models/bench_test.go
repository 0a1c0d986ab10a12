package models

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// benchStep measures steps of n sequences that take rows tokens each behind
// context tokens, which are the same unless the sequences are apart.
func benchStep(b *testing.B, m Model, n, rows, context int, apart bool) {
	cfg := m.Config()
	cache, err := kv.New(cfg.KV(), kv.Options{BlockLen: 32, Blocks: (n + 1) * pool.Parts(context+rows, 32)})
	if err != nil {
		b.Fatal(err)
	}
	var batch Batch
	tokens := make([]int32, max(context, rows))
	for i := range tokens {
		tokens[i] = int32(i*7919) % int32(cfg.Vocab)
	}
	filled := func() *kv.Sequence {
		s := cache.Open(nil)
		for lo := 0; lo < context; lo += 256 {
			chunk := min(256, context-lo)
			if err := s.Grow(chunk); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
			batch.Add(s, lo, 0, tokens[:chunk]...)
			if err := m.Forward(&batch, cache); err != nil {
				b.Fatal(err)
			}
		}
		return s
	}
	first := filled()
	seqs := []*kv.Sequence{first}
	for range n - 1 {
		if apart {
			seqs = append(seqs, filled())
		} else {
			seqs = append(seqs, first.Fork())
		}
	}
	batch.Reset()
	for i, s := range seqs {
		if err := s.Grow(rows); err != nil {
			b.Fatal(err)
		}
		batch.Add(s, context, 1, tokens[i%7:][:rows]...)
	}
	step := func() {
		if err := m.Forward(&batch, cache); err != nil {
			b.Fatal(err)
		}
	}
	benchFast(b, step, float64(n*rows), "tok/s(p10)")
}

// benchFast measures f, which does so much of unit. On a shared machine the mean
// says more of the neighbours than of f: it reports the fastest tenth.
func benchFast(b *testing.B, f func(), much float64, unit string) {
	f()
	b.ReportAllocs()
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		f()
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	fast := times[len(times)/10]
	b.ReportMetric(fast.Seconds()*1e6, "µs(p10)")
	b.ReportMetric(much/fast.Seconds(), unit)
}

func BenchmarkStep(b *testing.B) {
	for _, name := range []string{"lutra-tiny-s", "lutra-tiny-l"} {
		b.Run(name, func(b *testing.B) { benchSteps(b, openEmbedded(b, name).Model) })
	}
	b.Run("falcon3-1b", func(b *testing.B) {
		shape, err := synthetic.Named("falcon3-1b")
		if err != nil {
			b.Fatal(err)
		}
		f, err := synthetic.Build(shape, synthetic.DefaultOptions())
		if err != nil {
			b.Fatal(err)
		}
		pool := pool.New(0)
		defer pool.Close()
		m, err := loadModel(f, LoadOptions{Pool: pool})
		if err != nil {
			b.Fatal(err)
		}
		benchSteps(b, m)
	})
}

func benchSteps(b *testing.B, m Model) {
	for _, n := range []int{1, 2, 4, 8, 16, 32, 64} {
		b.Run(fmt.Sprintf("decode/N=%d", n), func(b *testing.B) { benchStep(b, m, n, 1, 256, false) })
		b.Run(fmt.Sprintf("apart/N=%d", n), func(b *testing.B) { benchStep(b, m, n, 1, 40, true) })
	}
	b.Run("prefill/T=128", func(b *testing.B) { benchStep(b, m, 1, 128, 0, false) })
	b.Run("prefill/T=512", func(b *testing.B) { benchStep(b, m, 1, 505, 0, false) })
}

// BenchmarkAttention is the attention of one layer after the other: n sequences
// that take rows tokens each, the last of so many.
func BenchmarkAttention(b *testing.B) {
	pool := pool.New(0)
	defer pool.Close()
	shapes := map[string]Config{
		"8x32": {Layers: 6, Heads: 8, KVHeads: 4, HeadDim: 32}, "8x256": {Layers: 2, Heads: 8, KVHeads: 4, HeadDim: 256}, "32x128": {Layers: 2, Heads: 32, KVHeads: 4, HeadDim: 128},
	}
	for _, name := range []string{"8x32", "8x256", "32x128"} {
		for _, s := range []struct{ n, rows, length int }{{1, 1, 100}, {1, 1, 1000}, {1, 1, 8000}, {32, 1, 40}, {32, 1, 100}, {8, 1, 100}, {1, 128, 128}, {1, 128, 4096}} {
			for _, alone := range []bool{true, false} {
				if alone && (s.length > 1000 || s.n*s.rows == 1) {
					continue
				}
				c := newAttCase(b, rand.New(rand.NewPCG(1, 1)), shapes[name], kv.Options{BlockLen: 32}, lens{scale: 0.1}, slices.Repeat([]int{s.length}, s.n), s.rows)
				b.Run(fmt.Sprintf("%s/N=%d/T=%d/context=%d/alone=%v", name, s.n, s.rows, s.length, alone), func(b *testing.B) {
					var p attPlan
					a, out := newAttention(executor{pool, alone}, c.cfg), make([]float32, len(c.rows)*c.cfg.Heads*c.cfg.HeadDim)
					a.makePlan(&p, c.rows, c.kv)
					macs := 0
					for _, r := range c.rows {
						macs += 2 * (r.pos + 1) * c.cfg.Heads * c.cfg.HeadDim
					}
					layer := 0
					benchFast(b, func() {
						a.run(out, c.qkv, &p, c.rows, c.kv, layer, &c.lens)
						layer = (layer + 1) % c.cfg.Layers
					}, float64(macs)/1e9, "GMAC/s(p10)")
				})
			}
		}
	}
}
