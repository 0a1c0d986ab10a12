package attention

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/kerneltest"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/kv"
)

// BenchmarkAttention is the attention of one layer after the other: n sequences
// that take rows tokens each, the last of so many.
func BenchmarkAttention(b *testing.B) {
	p := pool.New(0)
	defer p.Close()
	shapes := map[string]config{
		"8x32": {8, kv.Shape{Layers: 6, Heads: 4, HeadDim: 32}}, "8x256": {8, kv.Shape{Layers: 2, Heads: 4, HeadDim: 256}}, "32x128": {32, kv.Shape{Layers: 2, Heads: 4, HeadDim: 128}},
	}
	for _, name := range []string{"8x32", "8x256", "32x128"} {
		for _, s := range []struct{ n, rows, length int }{{1, 1, 100}, {1, 1, 1000}, {1, 1, 8000}, {32, 1, 40}, {32, 1, 100}, {8, 1, 100}, {1, 128, 128}, {1, 128, 4096}} {
			for _, alone := range []bool{true, false} {
				if alone && (s.length > 1000 || s.n*s.rows == 1) {
					continue
				}
				c := newTestCase(b, rand.New(rand.NewPCG(1, 1)), shapes[name], kv.Options{BlockLen: 32}, Mask{Scale: 0.1}, slices.Repeat([]int{s.length}, s.n), s.rows)
				workers := pool.Workers{Pool: p, Alone: alone}
				b.Run(fmt.Sprintf("%s/N=%d/T=%d/context=%d/alone=%v", name, s.n, s.rows, s.length, alone), func(b *testing.B) {
					var plan Plan
					a, out := New(workers, c.cfg.heads, c.cfg.Shape), make([]float32, len(c.rows)*c.cfg.heads*c.cfg.HeadDim)
					a.MakePlan(&plan, c.rows, c.cache)
					macs := 0
					for _, r := range c.rows {
						macs += 2 * (r.Pos + 1) * c.cfg.heads * c.cfg.HeadDim
					}
					layer := 0
					kerneltest.Fastest(b, func() {
						a.Run(out, c.qkv, &plan, c.rows, c.cache, layer, &c.mask)
						layer = (layer + 1) % c.cfg.Layers
					}, float64(macs)/1e9, "GMAC/s(p10)")
				})
			}
		}
	}
}

// BenchmarkFormats is a token of each of n sequences, in a model's shape and all formats: bytes of keys and values a second.
// Keys have a drift or none. It is small, so that weights are no denormal numbers.
func BenchmarkFormats(b *testing.B) {
	p := pool.New(1)
	defer p.Close()
	shapes := map[string]config{
		"smollm2": {9, kv.Shape{Layers: 4, Heads: 3, HeadDim: 64}}, "qwen2.5-coder": {12, kv.Shape{Layers: 4, Heads: 2, HeadDim: 128}},
	}
	for _, name := range []string{"smollm2", "qwen2.5-coder"} {
		for _, size := range [][2]int{{1, 2048}, {8, 2048}, {32, 2048}, {1, 8192}, {8, 8192}} {
			n, length := size[0], size[1]
			for _, kind := range []kv.Type{kv.F16, kv.Int8, int8AndInt4, kv.Int4} {
				c := newTestCase(b, rand.New(rand.NewPCG(1, 1)), shapes[name], kv.Options{Type: kind, BlockLen: 32}, Mask{Scale: 0.1}, slices.Repeat([]int{length}, n), 1)
				d := c.cfg.HeadDim
				freq, turn := slowPairs(d)
				for _, drift := range []*Drift{nil, NewDrift(slices.Repeat([]float32{10, 0}, c.cfg.Heads*d/2), d, true, freq, NewTurns(d/2, length, turn))} {
					c.mask.Drift = drift
					if drift != nil && c.mask.DriftIn(c.cache) == nil {
						continue
					}
					b.Run(fmt.Sprintf("%s/N=%d/context=%d/%v/drift=%t", name, n, length, kind, drift != nil), func(b *testing.B) {
						var plan Plan
						a, out := New(pool.Workers{Pool: p}, c.cfg.heads, c.cfg.Shape), make([]float32, len(c.rows)*c.cfg.heads*d)
						a.MakePlan(&plan, c.rows, c.cache)
						layer := 0
						kerneltest.Fastest(b, func() {
							a.Run(out, c.qkv, &plan, c.rows, c.cache, layer, &c.mask)
							layer = (layer + 1) % c.cfg.Layers
						}, float64(int64(n*length)*c.cache.TokenBytes(0))/1e9, "GB/s(p10)")
					})
				}
			}
		}
	}
}

// BenchmarkPrompt is the last chunk of a prompt of so many tokens, on one thread: multiply-accumulates a second.
func BenchmarkPrompt(b *testing.B) {
	p := pool.New(1)
	defer p.Close()
	shapes := map[string]config{
		"smollm2": {9, kv.Shape{Layers: 1, Heads: 3, HeadDim: 64}}, "qwen2.5-coder": {12, kv.Shape{Layers: 1, Heads: 2, HeadDim: 128}},
	}
	for _, name := range []string{"smollm2", "qwen2.5-coder"} {
		for _, length := range []int{256, 2048, 6144, 16384, 32768} {
			for _, kind := range []kv.Type{kv.F16, kv.Int8, kv.Int4} {
				c := newTestCase(b, rand.New(rand.NewPCG(1, 1)), shapes[name], kv.Options{Type: kind, BlockLen: 32}, Mask{Scale: 0.1}, []int{length}, 256)
				b.Run(fmt.Sprintf("%s/length=%d/%v", name, length, kind), func(b *testing.B) {
					var plan Plan
					a, out := New(pool.Workers{Pool: p}, c.cfg.heads, c.cfg.Shape), make([]float32, len(c.rows)*c.cfg.heads*c.cfg.HeadDim)
					a.MakePlan(&plan, c.rows, c.cache)
					macs := 0
					for _, r := range c.rows {
						macs += 2 * (r.Pos + 1) * c.cfg.heads * c.cfg.HeadDim
					}
					kerneltest.Fastest(b, func() { a.Run(out, c.qkv, &plan, c.rows, c.cache, 0, &c.mask) }, float64(macs)/1e9, "GMAC/s(p10)")
				})
			}
		}
	}
}
