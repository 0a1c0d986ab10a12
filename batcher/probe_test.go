package batcher

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models"
)

// probed runs f with an engine of lutra-tiny-s that reads its states.
func probed(t *testing.T, blocks int, opt Options, f func(ctx context.Context, e *Engine)) {
	t.Helper()
	m, pool := embeddedModel(t, 2)
	opt.Pool, opt.Probe = pool, &models.Probe{Layers: []int{0, 1, 2}}
	e := New(m, newCache(t, m, blocks, 8), opt)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	f(ctx, e)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// readTokens reads a generation to its end.
func readTokens(t *testing.T, s *Sequence, p sampling.Params) (toks []sampling.Token) {
	for tok, err := range s.Generate(t.Context(), p) {
		if err != nil {
			t.Error(err)
			return nil
		}
		toks = append(toks, tok)
	}
	return toks
}

// sameReadings reports tokens that differ in what was read.
func sameReadings(t *testing.T, what string, got, want []sampling.Token) {
	t.Helper()
	for i := range want {
		if i >= len(got) || got[i].ID != want[i].ID || got[i].Logprob != want[i].Logprob || len(want[i].Reading) != 3*256 || !slices.Equal(got[i].Reading, want[i].Reading) {
			t.Errorf("%s: token %d of %d has another reading", what, i, len(want))
			return
		}
	}
}

func TestReadingsAreTheSameInCrowdsAfterPreemptionsAndByPrefill(t *testing.T) {
	sweep.Full(t)
	const clients, n = 12, 40
	prompts, params := make([][]int32, clients), make([]sampling.Params, clients)
	for i := range prompts {
		for j := range 5 + 5*i {
			prompts[i] = append(prompts[i], int32((i/3*31+j*17)%1024)) // some share a beginning
		}
		params[i] = sampling.Params{MaxTokens: n, Temperature: 1, Seed: uint64(i), Logprobs: true, IgnoreEOS: true}
	}
	var alone [clients][]sampling.Token
	probed(t, 64, DefaultOptions(), func(ctx context.Context, e *Engine) {
		for i := range prompts {
			s, err := e.Open(ctx, prompts[i])
			if err != nil {
				t.Fatal(err)
			}
			alone[i] = readTokens(t, s, params[i])
			s.Close()
		}
	})
	probed(t, 48, DefaultOptions(), func(ctx context.Context, e *Engine) { // too few blocks for all
		var all sync.WaitGroup
		for i := range prompts {
			all.Go(func() {
				s, err := e.Open(ctx, prompts[i])
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				sameReadings(t, "in a crowd", readTokens(t, s, params[i]), alone[i])
			})
		}
		all.Wait()
		if e.Stats().Preemptions == 0 {
			t.Error("nothing was preempted")
		}
		for i, prompt := range prompts {
			s, err := e.Open(ctx, prompt)
			if err != nil {
				t.Fatal(err)
			}
			for _, tok := range alone[i] {
				s.Append(tok.ID)
			}
			toks, err := s.Scores(ctx, len(prompt), 0)
			if err != nil {
				t.Fatal(err)
			}
			sameReadings(t, "by prefill", toks, alone[i])
			s.Close()
		}
	})
}

func TestForksAndGuessesReadWhatTheirTokensWereSampledFrom(t *testing.T) {
	prompt := counting(20)
	params := make([]sampling.Params, 6)
	for i := range params {
		params[i] = sampling.Params{MaxTokens: 30, Temperature: 0.5, Seed: 3, Candidate: i, Logprobs: true, IgnoreEOS: true}
	}
	want := make([][]sampling.Token, len(params))
	opt := DefaultOptions()
	opt.Speculation = SpeculateOff
	probed(t, 64, opt, func(ctx context.Context, e *Engine) {
		for i := range params {
			s, err := e.Open(ctx, prompt)
			if err != nil {
				t.Fatal(err)
			}
			want[i] = readTokens(t, s, params[i])
			s.Close()
		}
	})
	opt.Speculation = "8"
	probed(t, 256, opt, func(ctx context.Context, e *Engine) {
		root, err := e.Open(ctx, prompt)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		forks, err := root.Fork(ctx, len(params))
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i, run := range GenerateAll(ctx, forks, params) {
			all.Go(func() {
				var got []sampling.Token
				for tok, err := range run {
					if err != nil {
						t.Error(err)
						return
					}
					got = append(got, tok)
				}
				sameReadings(t, "forked", got, want[i])
			})
		}
		all.Wait()
		for _, s := range forks {
			s.Close()
		}
	})
}
