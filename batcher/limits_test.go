package batcher

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/toy"
)

func TestWhatCannotFitIsRefusedAtOpen(t *testing.T) {
	m := &toy.Model{}
	start(t, m, 4, 8, DefaultOptions(), func(t *testing.T, r rig) {
		for _, c := range []struct {
			prompt []int32
			want   error
		}{{counting(33), ErrTooLong}, {[]int32{64}, ErrToken}, {[]int32{-1}, ErrToken}} {
			if _, err := r.Open(t.Context(), c.prompt); !errors.Is(err, c.want) {
				t.Errorf("Open of %d tokens: %v, want %v", len(c.prompt), err, c.want)
			}
		}
		s := r.open(counting(32)...) // fills the pool: can be scored, not continued
		defer s.Close()
		if _, err := s.Logits(t.Context()); err != nil {
			t.Error(err)
		}
		for _, err := range s.Generate(t.Context(), sampling.Params{}) {
			if !errors.Is(err, ErrTooLong) {
				t.Errorf("Generate: %v, want ErrTooLong", err)
			}
		}
		empty := r.open()
		defer empty.Close()
		if _, err := empty.Logits(t.Context()); !errors.Is(err, ErrToken) {
			t.Errorf("Logits of nothing: %v, want ErrToken", err)
		}
		empty.Append(counting(40)...)
		if _, err := empty.Fork(t.Context(), 2); !errors.Is(err, ErrTooLong) {
			t.Errorf("Fork: %v, want ErrTooLong", err)
		}
	})
}

func TestGenerationEndsAtStopTokensTheLimitAndTheContext(t *testing.T) {
	m := &toy.Model{}
	all := expect(m, counting(10), 22, sampling.Params{})
	start(t, m, 4, 8, DefaultOptions(), func(t *testing.T, r rig) {
		last := func(p sampling.Params) (tok sampling.Token, n int) {
			s := r.open(counting(10)...)
			defer s.Close()
			for got, err := range s.Generate(t.Context(), p) {
				if err != nil {
					t.Fatal(err)
				}
				tok, n = got, n+1
			}
			return tok, n
		}
		at := slices.Index(all, all[5])
		if tok, n := last(sampling.Params{Stop: []int32{all[5]}}); tok.Finish != sampling.FinishStop || n != at+1 || tok.ID != all[5] {
			t.Errorf("stop: %+v after %d tokens, want %d", tok, n, at+1)
		}
		if tok, n := last(sampling.Params{Stop: []int32{all[5]}, IgnoreEOS: true, MaxTokens: 9}); tok.Finish != sampling.FinishLength || n != 9 {
			t.Errorf("limit: %+v after %d tokens, want 9", tok, n)
		}
		if tok, n := last(sampling.Params{}); tok.Finish != sampling.FinishLength || n != 22 {
			t.Errorf("context: %+v after %d tokens, want 22", tok, n)
		}
	})
}

func TestAFullQueueIsBusyAndADrainingEngineClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, opt := &toy.Model{}, DefaultOptions()
		opt.Queue, opt.Sequences = 2, 3
		e := New(m, m.NewCache(8, 8), opt)
		a, _ := e.Open(t.Context(), []int32{1})
		b, _ := e.Open(t.Context(), []int32{1})
		if _, err := e.Open(t.Context(), []int32{1}); !errors.Is(err, ErrBusy) {
			t.Errorf("Open = %v, want ErrBusy", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx) }()
		if _, err := a.Logits(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := a.Fork(t.Context(), 2); !errors.Is(err, ErrBusy) {
			t.Errorf("Fork = %v, want ErrBusy", err)
		}
		drained := make(chan error)
		go func() { drained <- e.Drain(t.Context()) }()
		synctest.Wait()
		if _, err := e.Open(t.Context(), nil); !errors.Is(err, ErrClosed) {
			t.Errorf("Open while draining = %v, want ErrClosed", err)
		}
		if forks, err := a.Fork(t.Context(), 1); err != nil {
			t.Errorf("Fork while draining = %v", err)
		} else {
			forks[0].Close()
		}
		b.Close()
		b.Close()
		select {
		case <-drained:
			t.Error("drained with a sequence open")
		default:
			a.Close()
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		cancel()
		<-done
		checkEmpty(t, e)
	})
}

func TestASequenceThatCannotBeSampledEndsAlone(t *testing.T) {
	start(t, &toy.Model{}, 32, 4, DefaultOptions(), func(t *testing.T, r rig) {
		bad, good := r.open(1, 2), r.open(3, 4)
		defer bad.Close()
		defer good.Close()
		done := make(chan []int32)
		go func() { done <- collect(t, good, sampling.Params{MaxTokens: 9}) }()
		refuse := allowing(func(mask []uint64, completion []int32) {
			if len(completion) < 3 {
				mask[0] = 1
			}
		})
		var last error
		n := 0
		for _, err := range bad.Generate(t.Context(), sampling.Params{Constraint: refuse.begin()}) {
			n, last = n+1, err
		}
		if n != 4 || !errors.Is(last, sampling.ErrSample) {
			t.Errorf("%d tokens, then %v; want 3, ErrSample", n-1, last)
		}
		if got, want := <-done, expect(r.model, []int32{3, 4}, 9, sampling.Params{}); !slices.Equal(got, want) {
			t.Errorf("its neighbour got %v, want %v", got, want)
		}
	})
}

func TestARewardModelGivesScoresAndNoTokens(t *testing.T) {
	start(t, &toy.Model{Outputs: 2}, 32, 4, DefaultOptions(), func(t *testing.T, r rig) {
		s := r.open(1, 2)
		defer s.Close()
		row, err := s.Logits(t.Context())
		if want := r.model.Row([]int32{1, 2}); err != nil || !slices.Equal(row, want) {
			t.Errorf("Logits = %v, %v; want %v", row, err, want)
		}
		if _, err := s.Logits(t.Context(), 2); !errors.Is(err, ErrToken) {
			t.Errorf("Logits(2) = %v, want ErrToken", err)
		}
		for _, err := range s.Generate(t.Context(), sampling.Params{}) {
			if !errors.Is(err, sampling.ErrSample) {
				t.Errorf("Generate: %v, want ErrSample", err)
			}
		}
		if _, err := s.PromptLogprobs(t.Context(), 1); !errors.Is(err, sampling.ErrSample) {
			t.Errorf("PromptLogprobs: %v, want ErrSample", err)
		}
	})
}

func TestOptionsReportEveryFault(t *testing.T) {
	opt := DefaultOptions()
	if err := opt.Validate(); err != nil {
		t.Error(err)
	}
	opt.Queue, opt.StepRows, opt.StepTime = 0, 1, -1
	err := opt.Validate()
	for _, name := range []string{"queue", "step_rows", "step_time"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

func TestPromptLogprobsCoverEveryPositionInChunksOfFewRows(t *testing.T) {
	m, opt := &toy.Model{}, DefaultOptions()
	opt.StepRows = 4
	prompt := counting(40)
	start(t, m, 32, 4, opt, func(t *testing.T, r rig) {
		for range 2 { // the second time the prefix cache holds the prompt
			s := r.open(prompt...)
			got, err := s.PromptLogprobs(t.Context(), 2)
			if err != nil || len(got) != 39 {
				t.Fatalf("%d tokens, %v; want 39", len(got), err)
			}
			for i, tok := range got {
				want := sampling.Draw{Row: m.Row(prompt[:i+1]), Params: sampling.Params{TopLogprobs: 2}, ID: prompt[i+1]}
				new(sampling.Sampler).Run(&want)
				if tok.ID != want.Token.ID || tok.Logprob != want.Token.Logprob || !slices.Equal(tok.Top, want.Token.Top) {
					t.Errorf("position %d: %v, want %v", i+1, tok, want.Token)
				}
			}
			if got, want := collect(t, s, sampling.Params{MaxTokens: 5}), expect(m, prompt, 5, sampling.Params{}); !slices.Equal(got, want) {
				t.Errorf("afterwards %v, want %v", got, want)
			}
			s.Close()
		}
	})
}

func TestIdleSequencesLoseTheirBlocksBeforeBusyOnes(t *testing.T) {
	m := &toy.Model{}
	start(t, m, 16, 4, DefaultOptions(), func(t *testing.T, r rig) {
		idle, busy := r.open(counting(30)...), r.open(9, 9)
		defer idle.Close()
		defer busy.Close()
		before, err := idle.Logits(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := collect(t, busy, sampling.Params{MaxTokens: 50}), expect(m, []int32{9, 9}, 50, sampling.Params{}); !slices.Equal(got, want) {
			t.Errorf("the busy one got %v, want %v", got, want)
		}
		if st := r.Stats(); st.Evictions != 1 || st.Preemptions != 0 {
			t.Errorf("%d evictions, %d preemptions; want 1, 0", st.Evictions, st.Preemptions)
		}
		after, err := idle.Logits(t.Context())
		if err != nil || !slices.Equal(after, before) {
			t.Errorf("recomputed %v, %v; want %v", after, err, before)
		}
	})
}
