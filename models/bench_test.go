package models

import (
	"fmt"
	"testing"
)

// benchStep measures steps of n sequences that take rows tokens each and have
// context tokens behind them.
func benchStep(b *testing.B, m Model, n, rows, context int) {
	cfg := m.Config()
	kv, err := NewKVCache(cfg, KVOptions{BlockLen: 16, Blocks: n * blocksFor(context+rows, 16)})
	if err != nil {
		b.Fatal(err)
	}
	var batch Batch
	tokens := make([]int32, max(context, rows))
	for i := range tokens {
		tokens[i] = int32(i*7919) % int32(cfg.Vocab)
	}
	var seqs []*KVSeq
	for range n {
		s := kv.Open(nil)
		seqs = append(seqs, s)
		for lo := 0; lo < context; lo += 512 {
			chunk := min(512, context-lo)
			if err := s.Grow(chunk); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
			batch.Add(s, lo, 0, tokens[:chunk]...)
			if err := m.Forward(&batch, kv); err != nil {
				b.Fatal(err)
			}
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
		if err := m.Forward(&batch, kv); err != nil {
			b.Fatal(err)
		}
	}
	step()
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
	b.ReportMetric(float64(n*rows)*float64(b.N)/b.Elapsed().Seconds(), "tok/s")
}

func BenchmarkStep(b *testing.B) {
	for _, name := range []string{"lutra-tiny-s", "lutra-tiny-l"} {
		m := openEmbedded(b, name).Model
		for _, n := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("%s/decode/N=%d", name, n), func(b *testing.B) { benchStep(b, m, n, 1, 256) })
		}
		b.Run(name+"/prefill/T=512", func(b *testing.B) { benchStep(b, m, 1, 505, 0) })
	}
}
