package batcher

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
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

// recurrentModel is a small random model with recurrent layers: gated delta nets, short convolutions, or state spaces.
func recurrentModel(t *testing.T, arch synthetic.Arch) (models.Model, *pool.Pool) {
	t.Helper()
	pattern := "MM-*"
	if arch == synthetic.Mamba2 {
		pattern = "MMMM"
	}
	b, pool := smallModel(t, synthetic.Shape{Arch: arch, Spaces: synthetic.Spaces{Pattern: pattern, Heads: 4, HeadDim: 16, Groups: 2, Len: 16}})
	return b.Model, pool
}

// smallModel loads a random model that shape tells what it is, with small sizes.
func smallModel(t *testing.T, shape synthetic.Shape) (*models.Bundle, *pool.Pool) {
	t.Helper()
	shape.Name, shape.Vocab, shape.Context, shape.RopeBase, shape.TiedEmbedding = "small", 300, 512, 10000, true
	shape.Hidden, shape.FFN, shape.Layers, shape.Heads, shape.KVHeads, shape.HeadDim = 64, 64, 4, 2, 1, 32
	shape.Delta = synthetic.Delta{KeyHeads: 2, ValueHeads: 4, Width: 16}
	file, err := synthetic.Build(shape, synthetic.Options{Blocks: gguf.F16, Head: gguf.F16, Seed: 2})
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
	return b, pool
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
	for arch, kind := range map[synthetic.Arch]kv.Type{synthetic.Qwen35: kv.Int4, synthetic.NemotronH: kv.F16} {
		t.Run(string(arch), func(t *testing.T) { saysTheSame(t, arch, kind) })
	}
}

func saysTheSame(t *testing.T, arch synthetic.Arch, kind kv.Type) {
	m, pool := recurrentModel(t, arch)
	opt := DefaultOptions()
	opt.Pool, opt.StepTokens, opt.Control = pool, 2*Tile, func(id int32) bool { return id%5 == 0 }
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
	var want [requests][candidates][]string
	for i := range want {
		for k := range candidates {
			e, end := running(t, m, newCacheOf(t, m, kv.Options{Type: kind, BlockLen: 8, Blocks: 64, States: 1}), opt)
			s, err := e.Open(t.Context(), prompt(i))
			if err != nil {
				t.Fatal(err)
			}
			want[i][k] = answer(t, s, params(i, k))
			end()
		}
	}
	for _, room := range []struct{ blocks, states, residuals int }{{400, 100, 12}, {60, 100, 0}, {400, 5, 0}, {40, 3, 9}, {64, 1, 12}} {
		t.Run(fmt.Sprintf("%d blocks, %d states", room.blocks, room.states), func(t *testing.T) {
			e, end := running(t, m, newCacheOf(t, m, kv.Options{Type: kind, BlockLen: 8, Blocks: room.blocks, States: room.states, Residuals: room.residuals}), opt)
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

// Guesses of all kinds, mostly wrong or mostly right, about streams that share steps, prefixes and checkpoints, in caches
// that have a state for each guess or few.
func TestSpeculationChangesNoTokenOfARecurrentModel(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	for _, arch := range []synthetic.Arch{synthetic.Qwen35, synthetic.Mamba2, synthetic.LFM2, synthetic.NemotronH} {
		t.Run(string(arch), func(t *testing.T) {
			m, pool := recurrentModel(t, arch)
			const streams, length = 5, 90
			params := func(i int) sampling.Params {
				return sampling.Params{Temperature: []float32{0, 0.3}[i%2], Seed: uint64(i), MaxTokens: length}
			}
			prompt := func(i int) []int32 { return append(counting(40), int32(i), 3, int32(i)) }
			var want, texts [streams][]string
			right := guesser(func(tokens []int32, k int) (guess []int32) { // but for every seventh token
				n := len(tokens)
				for i := range texts {
					if texts[i] == nil || !slices.Equal(tokens[:43], prompt(i)) {
						continue
					}
					for at := n - 43; at < min(length, n-43+k); at++ {
						var id int32
						if _, err := fmt.Sscan(texts[i][at], &id); err != nil {
							t.Error(err)
						}
						if at%7 == 6 {
							id = (id + 1) % 300
						}
						guess = append(guess, id)
					}
				}
				return guess
			})
			for _, c := range []struct {
				how      Speculation
				states   int
				drafters []Drafter
			}{
				{SpeculateOff, 40, nil}, {"15", 40, []Drafter{right}}, {"3", 40, []Drafter{NewLookup(), right}}, {"3", 7, []Drafter{right}},
				{"4", 40, []Drafter{wild(rand.New(rand.NewPCG(3, 4)).IntN)}}, {SpeculateAuto, 12, []Drafter{NewLookup(), right}},
				{"3", 40, []Drafter{newModelDrafter(m, newStates(t, m, 100, 40), pool)}},
			} {
				opt := DefaultOptions()
				opt.Pool, opt.Speculation, opt.Drafters = pool, c.how, c.drafters
				e, end := running(t, m, newStates(t, m, 200, c.states), opt)
				var got [streams][]string
				for range 2 { // the second time prompts are found
					var all sync.WaitGroup
					for i := range streams {
						all.Go(func() {
							s, err := e.Open(t.Context(), prompt(i))
							if err != nil {
								t.Error(err)
								return
							}
							got[i] = answer(t, s, params(i))
						})
					}
					all.Wait()
					for i := range streams {
						if want[i] == nil {
							want[i], texts[i] = got[i], got[i]
						}
						if !slices.Equal(got[i], want[i]) {
							t.Errorf("speculation %s of %d states: %v, want %v", c.how, c.states, got[i], want[i])
						}
					}
				}
				st := end()
				made, accepted := st.DraftTokens[DraftLookup]+st.DraftTokens[DraftModel], st.DraftAccepted[DraftLookup]+st.DraftAccepted[DraftModel]
				if n := int64(len(c.how)); n < 3 && (made < 100 || accepted == made && c.drafters[0].Kind() == DraftLookup) {
					t.Errorf("speculation %s of %d states: %d of %d guesses were right", c.how, c.states, accepted, made)
				}
			}
		})
	}
}

// newStates makes a cache for a model with recurrent layers.
func newStates(t *testing.T, m models.Model, blocks, states int) *kv.Cache {
	t.Helper()
	return newCacheOf(t, m, kv.Options{BlockLen: 8, Blocks: blocks, States: states})
}

// newCacheOf makes a cache for a model.
func newCacheOf(t *testing.T, m models.Model, opt kv.Options) *kv.Cache {
	t.Helper()
	cache, err := kv.New(m.Config().KV(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	return cache
}

func TestARecurrentModelDraftsAndIsRightAboutItself(t *testing.T) {
	m := &toy.Model{States: 40}
	d := newModelDrafter(m, m.NewCache(64, 4), nil)
	opt := DefaultOptions()
	opt.Speculation, opt.Drafters = "3", []Drafter{d}
	start(t, m, 64, 4, opt, func(t *testing.T, r rig) {
		s := r.open(1, 2, 3)
		defer s.Close()
		p := sampling.Params{MaxTokens: 60}
		if got, want := collect(t, s, p), expect(m, []int32{1, 2, 3}, 60, p); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		synctest.Wait()
		if st := r.Stats(); st.DraftTokens[DraftModel] < 35 || st.DraftAccepted[DraftModel] < st.DraftTokens[DraftModel]-3 {
			t.Errorf("%d of %d guesses right", st.DraftAccepted[DraftModel], st.DraftTokens[DraftModel])
		}
	})
	checkNoReadings(t, d)
}

// unable is a model whose states cannot go back.
type unable struct{ *toy.Model }

func (m unable) Config() models.Config {
	c := m.Model.Config()
	c.GuessBytes = 0
	return c
}

func TestNothingIsGuessedWhereStatesCannotGoBack(t *testing.T) {
	able := &toy.Model{Logits: looping, States: 4}
	for name, c := range map[string]struct {
		m     models.Model
		cache *kv.Cache
	}{"unable": {unable{able}, able.NewCache(64, 4)}, "one state": {able, (&toy.Model{States: 1}).NewCache(64, 4)}} {
		for _, how := range []Speculation{SpeculateAuto, "4"} {
			opt := DefaultOptions()
			opt.Speculation, opt.Drafters = how, []Drafter{oracle(able)}
			e, end := running(t, c.m, c.cache, opt)
			s, err := e.Open(t.Context(), []int32{1, 2, 3})
			if err != nil {
				t.Fatal(err)
			}
			p := sampling.Params{MaxTokens: 30}
			if got, want := collect(t, s, p), expect(able, []int32{1, 2, 3}, 30, p); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
			s.Close()
			if st := end(); st.DraftTokens != [DraftKinds]int64{} {
				t.Errorf("%s: speculation %s computed %v guesses", name, how, st.DraftTokens)
			}
		}
	}
}
