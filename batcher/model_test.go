package batcher

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/kv"
)

// embeddedModel loads the smallest generator with its thread pool.
func embeddedModel(tb testing.TB, threads int) (models.Model, *pool.Pool) {
	tb.Helper()
	file, err := embedded.Open("lutra-tiny-s")
	if err != nil {
		tb.Fatal(err)
	}
	pool := pool.New(threads)
	tb.Cleanup(pool.Close)
	b, err := models.LoadFile(file, models.LoadOptions{Pool: pool})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { b.Close() })
	return b.Model, pool
}

func newCache(tb testing.TB, m models.Model, blocks, blockLen int) *kv.Cache {
	tb.Helper()
	cache, err := kv.New(m.Config().KV(), kv.Options{Type: kv.F16, BlockLen: blockLen, Blocks: blocks})
	if err != nil {
		tb.Fatal(err)
	}
	return cache
}

func TestARealModelSaysTheSameAloneAndAmongOthers(t *testing.T) {
	for _, kind := range []kv.Type{kv.F16, kv.Int4, kv.TypeOf(kv.Int8, kv.Int4)} {
		t.Run(kind.String(), func(t *testing.T) { aRealModelSaysTheSame(t, kind) })
	}
}

func aRealModelSaysTheSame(t *testing.T, kind kv.Type) {
	m, pool := embeddedModel(t, 2)
	const n, clients = 24, 12
	opt := DefaultOptions()
	opt.Pool, opt.StepTokens = pool, 2*Tile
	prompts := make([][]int32, clients)
	for i := range prompts {
		for j := range 5 + 7*i {
			prompts[i] = append(prompts[i], int32((i*31+j*17)%m.Config().Vocab))
		}
	}
	// run generates all prompts, in rounds of so many at once.
	run := func(blocks, residuals, atOnce int) (all [clients][]int32, st Stats) {
		e := New(m, newCacheOf(t, m, kv.Options{Type: kind, BlockLen: 8, Blocks: blocks, Residuals: residuals}), opt)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx) }()
		for lo := 0; lo < clients; lo += atOnce {
			var wg sync.WaitGroup
			for i := lo; i < lo+atOnce; i++ {
				wg.Go(func() {
					s, err := e.Open(ctx, prompts[i])
					if err != nil {
						t.Error(err)
						return
					}
					defer s.Close()
					all[i] = collect(t, s, sampling.Params{MaxTokens: n, Temperature: 1, TopP: 0.95, Seed: uint64(i)})
				})
			}
			wg.Wait()
		}
		if err := e.Drain(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		checkEmpty(t, e)
		return all, e.Stats()
	}
	alone, _ := run(64, 0, 1)
	opt.Speculation = "3"
	least := StepResiduals(opt.StepTokens, 8)
	for _, room := range [][2]int{{26, 0}, {200, least}, {200, least + 3}, {40, least + 1}} { // blocks, or residuals, for two or three at a time
		together, st := run(room[0], room[1], clients)
		for i := range prompts {
			if !slices.Equal(alone[i], together[i]) {
				t.Errorf("%d blocks, %d residuals, prompt %d: alone %v, among others %v", room[0], room[1], i, alone[i], together[i])
			}
		}
		t.Logf("%d preemptions in %d steps", st.Preemptions, st.Steps)
		if kind == kv.F16 {
			return
		}
	}
}

// BenchmarkStep measures decode steps of a real model with so many streams.
func BenchmarkStep(b *testing.B) {
	m, pool := embeddedModel(b, 0)
	for _, streams := range []int{1, 4, 8, 16, 32, 64} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) {
			opt := DefaultOptions()
			opt.Pool, opt.Unread = pool, 1<<20
			e := New(m, newCache(b, m, 4096, 16), opt)
			open := func() {
				for i := range streams {
					s, err := e.Open(b.Context(), []int32{int32(i + 1), 7, 9})
					if err != nil {
						b.Fatal(err)
					}
					s.mu.Lock()
					s.submit(request{kind: wantTokens, params: sampling.Params{Temperature: 0.8, TopP: 0.95, Seed: uint64(i)}, left: 200})
					s.mu.Unlock()
				}
			}
			b.ReportAllocs()
			var forward, all float64
			tokens := 0
			for b.Loop() {
				st, err := e.Step()
				if err != nil {
					b.Fatal(err)
				}
				if st.Tokens == 0 {
					open()
				}
				tokens += st.Sampled
				forward += st.Forward.Seconds()
				all += st.Duration.Seconds()
			}
			b.ReportMetric(float64(tokens)/all, "tokens/s")
			b.ReportMetric(100*(1-forward/all), "%engine")
		})
	}
}

// allowing is a sampling.Constraint from a function of the completion.
type allowing func(mask []uint64, completion []int32)

// after is where a completion stands in a constraint.
type after struct {
	allowing
	completion []int32
}

// begin is where completions begin in c.
func (c allowing) begin() sampling.Constraint { return &after{allowing: c} }

func (a *after) Next(id int32) sampling.Constraint {
	return &after{a.allowing, append(slices.Clip(a.completion), id)}
}

func (a *after) Allow(mask []uint64) { a.allowing(mask, a.completion) }
