package models

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// benchStep measures steps of n sequences that take rows tokens each behind
// the same context tokens.
func benchStep(b *testing.B, m Model, n, rows, context int) {
	cfg := m.Config()
	kv, err := NewKVCache(cfg, KVOptions{BlockLen: 16, Blocks: n * ceilDiv(context+rows, 16)})
	if err != nil {
		b.Fatal(err)
	}
	var batch Batch
	tokens := make([]int32, max(context, rows))
	for i := range tokens {
		tokens[i] = int32(i*7919) % int32(cfg.Vocab)
	}
	first := kv.Open(nil)
	for lo := 0; lo < context; lo += 256 {
		chunk := min(256, context-lo)
		if err := first.Grow(chunk); err != nil {
			b.Fatal(err)
		}
		batch.Reset()
		batch.Add(first, lo, 0, tokens[:chunk]...)
		if err := m.Forward(&batch, kv); err != nil {
			b.Fatal(err)
		}
	}
	batch.Reset()
	for i := range n {
		s := first.Fork()
		if err := s.Grow(rows); err != nil {
			b.Fatal(err)
		}
		batch.Add(s, context, 1, tokens[i%7:][:rows]...)
	}
	first.Release()
	step := func() {
		if err := m.Forward(&batch, kv); err != nil {
			b.Fatal(err)
		}
	}
	step()
	b.ReportAllocs()
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		step()
		times = append(times, time.Since(start))
	}
	// On a shared machine the mean says more of the neighbours than of the step.
	slices.Sort(times)
	fast := times[len(times)/10]
	b.ReportMetric(fast.Seconds()*1e6, "µs/step(p10)")
	b.ReportMetric(float64(n*rows)/fast.Seconds(), "tok/s(p10)")
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
		pool := kernels.NewPool(0)
		defer pool.Close()
		m, err := loadModel(f, LoadOptions{Pool: pool})
		if err != nil {
			b.Fatal(err)
		}
		benchSteps(b, m)
	})
}

func benchSteps(b *testing.B, m Model) {
	for _, n := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("decode/N=%d", n), func(b *testing.B) { benchStep(b, m, n, 1, 256) })
	}
	b.Run("prefill/T=512", func(b *testing.B) { benchStep(b, m, 1, 505, 0) })
}
