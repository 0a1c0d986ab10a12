package models

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/disk"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// benchStep measures steps of n sequences that take rows tokens each behind
// context tokens, which are the same unless the sequences are apart. The variants compute one
// after another.
func benchStep(b *testing.B, m Model, n, rows, context int, apart bool, by ...*Variant) {
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
		if len(by) > 0 {
			batch.Spans[i].Variant = by[i%len(by)]
		}
	}
	step := func() {
		if err := m.Forward(&batch, cache); err != nil {
			b.Fatal(err)
		}
	}
	kerneltest.Fastest(b, step, float64(n*rows), "tok/s(p10)")
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

// Steps of 64 streams, with adapters of rank 16 of all matrices of the layers and without.
func BenchmarkStepOfAdapters(b *testing.B) {
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
	bundle, err := LoadFile(f, LoadOptions{Pool: pool})
	if err != nil {
		b.Fatal(err)
	}
	defer bundle.Close()
	var by []*Variant
	for i := range 8 {
		a, err := loadAdapter(randomAdapter(b, f, 16, uint64(i)), bundle.exec, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer a.Close()
		by = append(by, variant(b, bundle, Use{a, 1}))
	}
	for _, n := range []int{1, 8, 64} {
		for _, adapters := range []int{0, 1, 8} {
			b.Run(fmt.Sprintf("N=%d/adapters=%d", n, adapters), func(b *testing.B) { benchStep(b, bundle.Model, n, 1, 256, false, by[:adapters]...) })
		}
	}
}

// randomAdapter makes one of all matrices of f's layers, in F16.
func randomAdapter(tb testing.TB, f *gguf.File, rank int, seed uint64) *gguf.File {
	r := rand.New(rand.NewPCG(1, seed))
	var tensors []gguf.Tensor
	add := func(name string, cols, rows int) {
		v := make([]float32, cols*rows)
		for i := range v {
			v[i] = float32(r.NormFloat64()) / 64
		}
		tensors = append(tensors, gguf.Tensor{Name: name, Type: gguf.F16, Dims: []int{cols, rows}}.At(disk.InMemory(encodeAs(tb, gguf.F16, v)), 0))
	}
	for i := range f.Tensors {
		if x := &f.Tensors[i]; strings.HasPrefix(x.Name, "blk.") && len(x.Dims) == 2 {
			add(x.Name+downName, x.Cols(), rank)
			add(x.Name+upName, rank, x.Rows())
		}
	}
	arch, _ := f.Metadata.String("general.architecture")
	out, err := gguf.Assemble(gguf.Metadata{keyType: "adapter", keyAdapterType: "lora", keyAlpha: float32(rank), "general.architecture": arch}, tensors, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}
