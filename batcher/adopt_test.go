package batcher

import (
	"errors"
	"fmt"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/toy"
)

func TestASequenceGoesOnBehindAdoptedTokensAsBehindItsOwn(t *testing.T) {
	p := sampling.Params{
		Temperature: 1, Seed: 3, Candidate: 5, MaxTokens: 20, IgnoreEOS: true, Logprobs: true,
		FrequencyPenalty: 1.5, PresencePenalty: 0.5, RepetitionPenalty: 1.3, // which tell prompt and completion apart
		Constraint: allowing(func(mask []uint64, completion []int32) { // and so does this one
			for id := range int32(64) {
				if len(completion) == 0 || id != completion[0] {
					mask[id/64] |= 1 << (id % 64)
				}
			}
		}).begin(),
	}
	start(t, &toy.Model{}, 64, 4, DefaultOptions(), func(t *testing.T, r rig) {
		whole := generated(t, r.open(1, 2, 3), p)
		for n := range len(whole) {
			s := r.open(1, 2, 3)
			for _, tok := range whole[:n] {
				s.Adopt(tok.ID)
			}
			if n%2 == 1 { // a fork has adopted them too
				forks, err := s.Fork(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				s.Close()
				s = forks[0]
			}
			rest := p
			rest.MaxTokens -= n
			if got := generated(t, s, rest); fmt.Sprint(got) != fmt.Sprint(whole[n:]) {
				t.Fatalf("behind %d adopted tokens come %v, want %v", n, got, whole[n:])
			}
		}
	})
}

func TestWhatCannotBeAdoptedFailsTheNextCall(t *testing.T) {
	start(t, &toy.Model{}, 64, 4, DefaultOptions(), func(t *testing.T, r rig) {
		s := r.open(1, 2, 3)
		s.Adopt(1 << 20)
		for _, err := range s.Generate(t.Context(), sampling.Params{MaxTokens: 1}) {
			if !errors.Is(err, ErrToken) {
				t.Errorf("a token outside the vocabulary ends with %v", err)
			}
		}
		s.Close()
	})
}
