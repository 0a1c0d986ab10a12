package batcher

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
	"github.com/lutra-lm/lutra/models/toy"
)

// recurrentModel is a small random model with recurrent layers: gated delta nets, or state spaces.
func recurrentModel(t *testing.T, arch synthetic.Arch) (models.Model, *pool.Pool) {
	t.Helper()
	file, err := synthetic.Build(synthetic.Shape{
		Name: "recurrent", Hidden: 64, FFN: 64, Layers: 4, Heads: 2, KVHeads: 1, HeadDim: 32, Vocab: 300, Context: 512,
		RopeBase: 10000, TiedEmbedding: true, Arch: arch, Delta: synthetic.Delta{KeyHeads: 2, ValueHeads: 4, Width: 16},
		Spaces: synthetic.Spaces{Pattern: "MM-*", Heads: 4, HeadDim: 16, Groups: 2, Len: 16},
	}, synthetic.Options{Blocks: gguf.F16, Head: gguf.F16, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	pool := pool.New(2)
	t.Cleanup(pool.Close)
	b, err := models.LoadFile(file, models.LoadOptions{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b.Model, pool
}

// running starts an engine for a test and returns what ends it.
func running(t *testing.T, m models.Model, cache *kv.Cache, opt Options) (*Engine, func() Stats) {
	t.Helper()
	e := New(m, cache, opt)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	return e, func() Stats {
		t.Helper()
		if err := e.Drain(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		checkEmpty(t, e)
		return e.Stats()
	}
}

// answer is tokens with the bits of their log-probabilities.
func answer(t *testing.T, s *Sequence, p sampling.Params) (out []string) {
	p.Logprobs = true
	for _, tok := range generated(t, s, p) {
		out = append(out, fmt.Sprintf("%d %x", tok.ID, math.Float32bits(tok.Logprob)))
	}
	return out
}

// Requests of four candidates each, with common beginnings, in a cache that has room
// for few of them: the candidates are forks, are computed together while they agree,
// are preempted, and begin at checkpoints.
func TestARecurrentModelSaysTheSameAloneAndAmongOthers(t *testing.T) {
	sweep.NoRace(t)
	for _, arch := range []synthetic.Arch{synthetic.Qwen35, synthetic.NemotronH} {
		t.Run(string(arch), func(t *testing.T) { saysTheSame(t, arch) })
	}
}

func saysTheSame(t *testing.T, arch synthetic.Arch) {
	m, pool := recurrentModel(t, arch)
	opt := DefaultOptions()
	opt.Pool, opt.StepTokens = pool, 2*Tile
	const requests, candidates, length = 6, 4, 40
	prompt := func(i int) []int32 {
		p := counting(50)
		for j := range 3 + 9*i {
			p = append(p, int32((i*31+j*17)%300))
		}
		return p
	}
	params := func(i, k int) sampling.Params {
		return sampling.Params{Temperature: []float32{0.05, 1}[k%2], Seed: uint64(i), Candidate: k / 2, MaxTokens: length}
	}
	newCache := func(blocks, states int) *kv.Cache {
		cache, err := kv.New(m.Config().KV(), kv.Options{BlockLen: 8, Blocks: blocks, States: states})
		if err != nil {
			t.Fatal(err)
		}
		return cache
	}
	var want [requests][candidates][]string
	for i := range want {
		for k := range candidates {
			e, end := running(t, m, newCache(64, 1), opt)
			s, err := e.Open(t.Context(), prompt(i))
			if err != nil {
				t.Fatal(err)
			}
			want[i][k] = answer(t, s, params(i, k))
			end()
		}
	}
	for _, room := range []struct{ blocks, states int }{{400, 100}, {60, 100}, {400, 5}, {40, 3}, {64, 1}} {
		t.Run(fmt.Sprintf("%d blocks, %d states", room.blocks, room.states), func(t *testing.T) {
			e, end := running(t, m, newCache(room.blocks, room.states), opt)
			var all sync.WaitGroup
			for i := range requests {
				all.Go(func() {
					s, err := e.Open(t.Context(), prompt(i))
					if err != nil {
						t.Error(err)
						return
					}
					defer s.Close()
					forks, err := s.Fork(t.Context(), candidates)
					if err != nil {
						t.Error(err)
						return
					}
					for k, fork := range forks {
						all.Go(func() {
							if got := answer(t, fork, params(i, k)); !slices.Equal(got, want[i][k]) {
								t.Errorf("candidate %d of request %d: %v, alone %v", k, i, got, want[i][k])
							}
						})
					}
				})
			}
			all.Wait()
			again, err := e.Open(t.Context(), prompt(requests-1))
			if err != nil {
				t.Fatal(err)
			}
			if got := answer(t, again, params(requests-1, 0)); !slices.Equal(got, want[requests-1][0]) {
				t.Errorf("asked again: %v, at first %v", got, want[requests-1][0])
			}
			st := end()
			if room.states == 100 && room.blocks == 400 && st.PrefixHits < 48 {
				t.Errorf("%d prefix hits", st.PrefixHits)
			}
			if room.states < 24 && st.Preemptions+st.Evictions == 0 {
				t.Error("nobody lost blocks: there was room for all")
			}
		})
	}
}

func TestAPromptBeginsAtTheCheckpointOfAnEqualOne(t *testing.T) {
	m := &toy.Model{States: 8}
	prompt := counting(100)
	start(t, m, 64, 8, DefaultOptions(), func(t *testing.T, r rig) {
		s := r.open(prompt...)
		collect(t, s, sampling.Params{MaxTokens: 1})
		s.Close()
		before := m.Computed()
		again := r.open(append(slices.Clone(prompt), 7)...)
		defer again.Close()
		collect(t, again, sampling.Params{MaxTokens: 1})
		if n := m.Computed() - before; n != 5 { // 96 of 101 stand at the checkpoint
			t.Errorf("%d tokens computed, want 5", n)
		}
	})
}

func TestARecurrentModelIsNotSpeculatedFor(t *testing.T) {
	for _, how := range []Speculation{SpeculateAuto, "4"} {
		m := &toy.Model{Logits: looping, States: 4}
		opt := DefaultOptions()
		opt.Speculation, opt.Drafters = how, []Drafter{oracle(m)}
		start(t, m, 64, 4, opt, func(t *testing.T, r rig) {
			s := r.open(1, 2, 3)
			defer s.Close()
			p := sampling.Params{MaxTokens: 30}
			if got, want := collect(t, s, p), expect(m, []int32{1, 2, 3}, 30, p); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			synctest.Wait()
			if st := r.Stats(); st.DraftTokens != [DraftKinds]int64{} {
				t.Errorf("speculation %s computed %v guesses", how, st.DraftTokens)
			}
		})
	}
}
