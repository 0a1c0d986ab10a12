package batcher

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

// rig is an engine over the toy model, running inside a synctest bubble.
type rig struct {
	*Engine
	model *toy.Model
	t     *testing.T
}

// start runs f with a stepping engine and checks afterwards that nothing is left.
func start(t *testing.T, m *toy.Model, blocks, blockLen int, opt Options, f func(t *testing.T, r rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := rig{New(m, m.NewCache(blocks, blockLen), opt), m, t}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		f(t, r)
		synctest.Wait()
		if err := r.Drain(t.Context()); err != nil {
			t.Errorf("Drain = %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
		checkEmpty(t, r.Engine)
	})
}

// checkEmpty verifies that a stopped engine without open sequences holds no blocks.
func checkEmpty(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.loop.kv.Check(); err != nil {
		t.Error(err)
	}
	if e.loop.kv.FreeStates() != e.loop.kv.States() {
		t.Errorf("%d of %d recurrent states free after everything was closed", e.loop.kv.FreeStates(), e.loop.kv.States())
	}
	if e.loop.kv.Free() != e.loop.kv.Blocks() {
		t.Errorf("%d of %d KV blocks free after everything was closed", e.loop.kv.Free(), e.loop.kv.Blocks())
	}
	if n := len(e.loop.admission.active) + len(e.loop.admission.waiting) + len(e.loop.admission.idle) + len(e.box.open) + e.box.queued; n != 0 {
		t.Errorf("%d sequences left after everything was closed", n)
	}
}

// open opens a sequence that lives as long as the test.
// Stats returns the statistics after the step under way: an engine publishes them when its
// callers have been woken.
func (r rig) Stats() Stats {
	synctest.Wait()
	return r.Engine.Stats()
}

func (r rig) open(prompt ...int32) *Sequence {
	r.t.Helper()
	s, err := r.Open(r.t.Context(), prompt)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// collect reads a generation to its end.
func collect(t *testing.T, s *Sequence, p sampling.Params) []int32 {
	t.Helper()
	var ids []int32
	for tok, err := range s.Generate(t.Context(), p) {
		if err != nil {
			t.Errorf("Generate: %v", err)
			return ids
		}
		ids = append(ids, tok.ID)
	}
	return ids
}

// expect returns the tokens that sampling with p after prompt must give.
func expect(m *toy.Model, prompt []int32, n int, p sampling.Params) []int32 {
	var s sampling.Sampler
	all := slices.Clone(prompt)
	for range n {
		d := sampling.Draw{Row: m.Row(all), Params: p, ID: sampling.Sampled, Position: len(all), Tokens: all, Prompt: len(prompt)}
		s.Run(&d)
		all = append(all, d.Token.ID)
	}
	return all[len(prompt):]
}

func TestGreedyTokensAreThoseOfTheNaiveLoop(t *testing.T) {
	m := &toy.Model{}
	prompt := []int32{3, 1, 4, 1, 5, 9, 2, 6}
	want := expect(m, prompt, 40, sampling.Params{})
	start(t, m, 32, 4, DefaultOptions(), func(t *testing.T, r rig) {
		s := r.open(prompt...)
		defer s.Close()
		if got := collect(t, s, sampling.Params{MaxTokens: 40}); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if s.Len() != 48 {
			t.Errorf("Len = %d, want 48", s.Len())
		}
	})
}

func TestPausingAndGoingOnChangesNothing(t *testing.T) {
	m := &toy.Model{}
	prompt := []int32{7, 7, 7}
	want := expect(m, prompt, 30, sampling.Params{})
	start(t, m, 32, 4, DefaultOptions(), func(t *testing.T, r rig) {
		s := r.open(prompt...)
		defer s.Close()
		var got []int32
		for len(got) < 30 {
			n := 0
			for tok, err := range s.Generate(t.Context(), sampling.Params{}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, tok.ID)
				if n++; n == 3 {
					break
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestForksComputeThePromptOnceAndDoNotDisturbTheirParent(t *testing.T) {
	m := &toy.Model{}
	prompt := make([]int32, 100)
	for i := range prompt {
		prompt[i] = int32(i % 50)
	}
	want := expect(m, prompt, 10, sampling.Params{})
	start(t, m, 512, 8, DefaultOptions(), func(t *testing.T, r rig) {
		s := r.open(prompt...)
		forks, err := s.Fork(t.Context(), 32)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Computed(); got != 99 {
			t.Errorf("forking computed %d tokens, want 99", got)
		}
		late := r.open(prompt...)
		hit, err := late.Fork(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := hit[0].CachedPrompt(), late.CachedPrompt(); got != want || got == 0 {
			t.Errorf("a fork of a sequence with %d cached tokens says %d", want, got)
		}
		hit[0].Close()
		late.Close()
		for _, k := range append(forks, s) {
			if got := collect(t, k, sampling.Params{MaxTokens: 10}); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			k.Close()
		}
	})
}

func TestAFailingStepReachesEverySequence(t *testing.T) {
	boom := errors.New("boom")
	for name, fail := range map[string]func(*models.Batch) error{
		"error": func(*models.Batch) error { return boom },
		"panic": func(*models.Batch) error { panic(boom) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, opt := &toy.Model{Before: fail}, DefaultOptions()
				opt.Name = "toy"
				e := New(m, m.NewCache(8, 4), opt)
				s, _ := e.Open(t.Context(), []int32{1, 2})
				other, _ := e.Open(t.Context(), []int32{1, 2})
				done := make(chan error)
				go func() { done <- e.Run(t.Context()) }()
				wanted := func(what string, err error) {
					t.Helper()
					var failed *FailedError
					if !errors.As(err, &failed) || failed.Model != "toy" || !errors.Is(err, ErrClosed) || errors.Is(err, ErrPanic) != (name == "panic") || !strings.Contains(err.Error(), "boom") {
						t.Errorf("%s: %v, want a FailedError with its cause", what, err)
					}
				}
				if e.Failed() != nil {
					t.Error("an engine has failed before its first step")
				}
				for _, err := range s.Generate(t.Context(), sampling.Params{}) {
					wanted("Generate", err)
				}
				wanted("Run", <-done)
				_, err := other.Logits(t.Context())
				wanted("Logits", err)
				_, err = e.Open(t.Context(), nil)
				wanted("Open", err)
				if f := e.Failed(); f == nil || f.Model != "toy" {
					t.Errorf("Failed() = %v, want the failure", f)
				}
				checkEmpty(t, e)
			})
		})
	}
}

func TestAReaderThatGathersIsWokenForTheLastTokensToo(t *testing.T) {
	m := &toy.Model{}
	prompt := []int32{3, 1, 4}
	for _, gather := range []int{1, 7, 40, 1000} { // more than may be unread, too
		p := sampling.Params{MaxTokens: 100, FlushEvery: gather}
		start(t, m, 64, 4, DefaultOptions(), func(t *testing.T, r rig) {
			s := r.open(prompt...)
			defer s.Close()
			if got, want := collect(t, s, p), expect(m, prompt, 100, p); !slices.Equal(got, want) {
				t.Errorf("gathering %d: %v, want %v", gather, got, want)
			}
		})
	}
}

func TestAContextOfBackgroundWorkMakesItsSequencesGiveWay(t *testing.T) {
	start(t, &toy.Model{}, 8, 16, DefaultOptions(), func(t *testing.T, r rig) {
		for _, c := range []struct {
			ctx  context.Context
			want bool
		}{{t.Context(), false}, {WithBackground(t.Context()), true}} {
			s, err := r.Open(c.ctx, counting(4))
			if err != nil {
				t.Fatal(err)
			}
			if s.background != c.want || s.task.demand.Background != c.want {
				t.Errorf("in background: %v, want %v", s.background, c.want)
			}
			s.Close()
		}
	})
}
