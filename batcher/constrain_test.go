package batcher

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/synthetic"
	"github.com/lutra-lm/lutra/models/toy"
)

// rails forces tokens by a function of how many tokens come before them; elsewhere anything
// may come.
type rails struct {
	forced *func(at int) (int32, bool)
	at     int
}

func newRails(forced func(at int) (int32, bool)) sampling.Constraint { return rails{&forced, 0} }

func (r rails) Next(int32) sampling.Constraint { return rails{r.forced, r.at + 1} }
func (r rails) Forced() (int32, bool)          { return (*r.forced)(r.at) }

func (r rails) Allow(mask []uint64) {
	for i := range mask {
		mask[i] = ^uint64(0)
	}
}

func (r rails) Prepare() sampling.Prepared {
	c := make(chan struct{})
	close(c)
	return sampling.Prepared{Forced: c, Allowed: c}
}

// tenForced forces all but every eleventh token.
func tenForced(at int) (int32, bool) { return int32(at % 40), at%11 != 0 }

func TestForcedTokensAreComputedInOneStep(t *testing.T) {
	for _, logprobs := range []bool{false, true} {
		for _, states := range []int{0, 4} {
			m := &toy.Model{States: states}
			start(t, m, 64, 4, DefaultOptions(), func(t *testing.T, r rig) {
				s := r.open(1, 2, 3)
				defer s.Close()
				tokens := collect(t, s, sampling.Params{MaxTokens: 44, Constraint: newRails(tenForced), Logprobs: logprobs})
				for i, id := range tokens {
					if want, forced := tenForced(i); forced && id != want {
						t.Errorf("token %d is %d, want %d", i, id, want)
					}
				}
				st := r.Stats()
				if st.Steps > 6 || st.ForcedTokens != 40 || st.GeneratedTokens != 44 || len(tokens) != 44 {
					t.Errorf("%d tokens in %d steps, %d forced; want 44 in at most 6, 40 forced", len(tokens), st.Steps, st.ForcedTokens)
				}
			})
		}
	}
}

func TestForcedTokensTakeOnlyTheLanesThatAStepBeginsAnyway(t *testing.T) {
	m := &toy.Model{Before: func(b *models.Batch) error {
		if len(b.Tokens) > Tile {
			return fmt.Errorf("a step of %d tokens", len(b.Tokens))
		}
		return nil
	}}
	start(t, m, 400, 4, DefaultOptions(), func(t *testing.T, r rig) {
		var all sync.WaitGroup
		for i := range 12 {
			s := r.open(int32(i))
			all.Go(func() {
				defer s.Close()
				collect(t, s, sampling.Params{MaxTokens: 60, Constraint: newRails(tenForced)})
			})
		}
		all.Wait()
	})
}

func TestForcedTokensAreThoseThatAMaskWouldLeave(t *testing.T) {
	const n = 40
	prompt := []int32{5, 4, 3, 2, 1}
	for i, p := range everyOption {
		p.MaxTokens, p.Seed = n, uint64(i)
		for _, how := range []Speculation{SpeculateOff, SpeculateAuto, "5"} {
			for _, m := range []*toy.Model{{}, {Logits: looping}, {States: 6}} {
				opt := DefaultOptions()
				opt.Speculation, opt.Unread = how, 7
				opt.Drafters = []Drafter{oracle(m)}
				var want []sampling.Token
				start(t, m, 64, 4, opt, func(t *testing.T, r rig) {
					p.Constraint = newMaze(&labyrinth{seed: uint64(i), vocab: 40, plain: true})
					want = generated(t, r.open(prompt...), p)
				})
				start(t, m, 64, 4, opt, func(t *testing.T, r rig) {
					p.Constraint = newMaze(&labyrinth{seed: uint64(i), vocab: 40, slow: i%2 > 0})
					if got := generated(t, r.open(prompt...), p); fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%+v, speculation %s: %v, want %v", p, how, got, want)
					}
				})
			}
		}
	}
}

func TestForcedTokensEndWhereGenerationEnds(t *testing.T) {
	forced := func(at int) (int32, bool) { return int32(10 + at%20), at > 0 }
	start(t, &toy.Model{}, 8, 4, DefaultOptions(), func(t *testing.T, r rig) {
		for _, c := range []struct {
			p      sampling.Params
			n      int
			finish sampling.Finish
		}{
			{sampling.Params{Stop: []int32{15}}, 6, sampling.FinishStop},
			{sampling.Params{MaxTokens: 8}, 8, sampling.FinishLength},
			{sampling.Params{MaxTokens: 1}, 1, sampling.FinishLength},
			{sampling.Params{}, 30, sampling.FinishLength}, // the pool is full
		} {
			c.p.Constraint = newRails(forced)
			got := generated(t, r.open(5, 6), c.p)
			if len(got) != c.n || got[len(got)-1].Finish != c.finish {
				t.Errorf("%+v: %v; want %d tokens, finish %d", c.p, got, c.n, c.finish)
			}
		}
		p := sampling.Params{MaxTokens: 4, LogitBias: map[int32]float32{12: float32(math.Inf(-1))}, Constraint: newRails(forced)}
		s := r.open(5, 6)
		defer s.Close()
		if got := collect(t, s, p); slices.Contains(got, 12) {
			t.Errorf("%v holds a token that a bias forbids", got)
		}
	})
}

// gate is a constraint that knows nothing before its channel is closed.
type gate struct {
	open chan struct{}
	only int32
}

func (g gate) Next(int32) sampling.Constraint { return g }
func (g gate) Forced() (int32, bool)          { return 0, false }
func (g gate) Allow(mask []uint64)            { mask[0] |= 1 << g.only }
func (g gate) Prepare() sampling.Prepared     { return sampling.Prepared{Forced: g.open, Allowed: g.open} }

func TestASequenceWhoseMaskIsLateWaitsAndNobodyElse(t *testing.T) {
	for _, states := range []int{0, 4} {
		m := &toy.Model{States: states, Before: func(*models.Batch) error { time.Sleep(time.Millisecond); return nil }}
		start(t, m, 64, 4, DefaultOptions(), func(t *testing.T, r rig) {
			g := gate{make(chan struct{}), 9}
			late := r.open(1, 2, 3)
			defer late.Close()
			done := make(chan []int32)
			go func() { done <- collect(t, late, sampling.Params{MaxTokens: 6, Constraint: g}) }()
			synctest.Wait()
			other := r.open(4, 5)
			defer other.Close()
			before := time.Now()
			if got, want := collect(t, other, sampling.Params{MaxTokens: 30}), expect(m, []int32{4, 5}, 30, sampling.Params{}); !slices.Equal(got, want) {
				t.Errorf("its neighbour says %v, want %v", got, want)
			}
			if took := time.Since(before); took > 40*time.Millisecond { // of the bubble's clock
				t.Errorf("its neighbour took %v for 31 steps of a millisecond", took)
			}
			if late.Unread() > 0 {
				t.Errorf("%d tokens were sampled without their mask", late.Unread())
			}
			steps := r.Stats().Steps
			time.Sleep(time.Second)
			if more := r.Stats().Steps - steps; more > 0 {
				t.Errorf("%d steps while nothing was to be done", more)
			}
			close(g.open)
			if got := <-done; !slices.Equal(got, []int32{9, 9, 9, 9, 9, 9}) {
				t.Errorf("then it says %v", got)
			}
		})
	}
}

func TestASequenceThatWaitsForAMaskMayBeAskedForSomethingElse(t *testing.T) {
	for _, states := range []int{0, 4} {
		m := &toy.Model{States: states}
		start(t, m, 64, 4, DefaultOptions(), func(t *testing.T, r rig) {
			s := r.open(1, 2, 3)
			defer s.Close()
			g := gate{make(chan struct{}), 9}
			ctx, cancel := context.WithCancel(t.Context())
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				for range s.Generate(ctx, sampling.Params{Constraint: g}) {
				}
			}()
			synctest.Wait()
			time.Sleep(time.Second) // of the bubble's clock
			cancel()
			<-stopped
			row, err := s.Logits(t.Context())
			if want := m.Row([]int32{1, 2, 3}); err != nil || !slices.Equal(row, want) {
				t.Errorf("Logits = %v, %v, want %v", row, err, want)
			}
			if got, want := collect(t, s, sampling.Params{MaxTokens: 5}), expect(m, []int32{1, 2, 3}, 5, sampling.Params{}); !slices.Equal(got, want) {
				t.Errorf("without the constraint it says %v, want %v", got, want)
			}
			close(g.open)
		})
	}
}

func TestAConstraintReadsEachTokenOnce(t *testing.T) {
	for _, how := range []Speculation{SpeculateOff, "3"} {
		m := &toy.Model{Logits: looping}
		opt := DefaultOptions()
		opt.Speculation = how
		start(t, m, 200, 4, opt, func(t *testing.T, r rig) {
			s := r.open(1, 2, 3)
			defer s.Close()
			count := &counted{}
			const n = 400
			collect(t, s, sampling.Params{MaxTokens: n, Constraint: counting1{count}})
			forks, err := s.Fork(t.Context(), 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range forks {
				collect(t, f, sampling.Params{MaxTokens: 10, Constraint: counting1{count}})
				f.Close()
			}
			// Each token once, guesses and where they are taken back a few times.
			if most := 12 * (n + 30); count.tokens > most {
				t.Errorf("speculation %s: %d tokens were read, want at most %d", how, count.tokens, most)
			}
		})
	}
}

// counted counts the tokens that a constraint is told of.
type counted struct{ tokens int }

type counting1 struct{ *counted }

func (c counting1) Next(int32) sampling.Constraint { c.tokens++; return c }
func (c counting1) Allow(mask []uint64)            { mask[0] = ^uint64(0) }

func TestForcedTokensAreTheSameInACrowdOfARealRecurrentModel(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	m, pool := recurrentModel(t, synthetic.Qwen35)
	opt := DefaultOptions()
	opt.Pool = pool
	const clients = 5
	params := func(i int) sampling.Params {
		return sampling.Params{Temperature: 1, Seed: uint64(i), MaxTokens: 40, Constraint: newMaze(&labyrinth{seed: uint64(i), vocab: 300, slow: true})}
	}
	run := func(blocks, states, atOnce int) (all [clients][]string, st Stats) {
		cache, err := kv.New(m.Config().KV(), kv.Options{BlockLen: 8, Blocks: blocks, States: states})
		if err != nil {
			t.Fatal(err)
		}
		e, end := running(t, m, cache, opt)
		for lo := 0; lo < clients; lo += atOnce {
			var wg sync.WaitGroup
			for i := lo; i < min(lo+atOnce, clients); i++ {
				wg.Go(func() {
					s, err := e.Open(t.Context(), counting(20+7*i))
					if err != nil && !errors.Is(err, ErrBusy) {
						t.Error(err)
						return
					}
					all[i] = answer(t, s, params(i))
				})
			}
			wg.Wait()
		}
		return all, end()
	}
	alone, st := run(64, 4, 1)
	if st.ForcedTokens < clients*10 {
		t.Errorf("%d tokens were forced", st.ForcedTokens)
	}
	crowd, _ := run(30, 3, clients)
	for i := range alone {
		if !slices.Equal(alone[i], crowd[i]) {
			t.Errorf("client %d: %v in a crowd, %v alone", i, crowd[i], alone[i])
		}
	}
}
