package batcher

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

// Tokens 1 and 2 of the toy begin and end messages.
func controls(id int32) bool { return id == 1 || id == 2 }

// message is a message of n tokens by a role.
func message(rng *rand.Rand, role int32, n int) []int32 {
	m := []int32{1, role}
	for range n {
		m = append(m, 10+rng.Int32N(50))
	}
	return append(m, 2, 9)
}

// agentSession asks what an agent asks in a session: each prompt has one more message or two, and a reminder at the
// end that the next one lacks. Between, others ask for something else. tell is told of each prompt how many of its first tokens were
// known, and how many were computed.
func agentSession(t *testing.T, r rig, seed uint64, tell func(prompt, known, computed int)) {
	rng := rand.New(rand.NewPCG(seed, 1))
	chat := message(rng, 3, 300)
	var before [][]int32
	ask := func(prompt []int32) {
		known := 0
		for _, b := range before {
			known = max(known, common(b, prompt))
		}
		before = append(before, prompt)
		computed := r.model.Computed()
		s, p := r.open(prompt...), sampling.Params{MaxTokens: 1 + rng.IntN(90), Temperature: 1, Seed: seed}
		got := collect(t, s, p)
		if want := expect(r.model, prompt, p.MaxTokens, p); !slices.Equal(got, want) {
			t.Errorf("prompt %d: %v, want %v", len(before), got, want)
		}
		s.Close()
		synctest.Wait()
		tell(len(prompt), known, r.model.Computed()-computed-len(got)+1)
	}
	for turn := range 12 {
		if turn%5 == 0 {
			ask(slices.Concat(message(rng, 3, 6), message(rng, 4, 20), []int32{1, 5, 9}))
		}
		ask(slices.Concat(chat, message(rng, 4, 5+rng.IntN(60)), []int32{1, 5, 9}))
		for range 1 + rng.IntN(2) {
			chat = append(chat, message(rng, 5+rng.Int32N(2), rng.IntN(300))...)
		}
	}
}

// Whatever the turns are, no more of what was known is computed again than a block and the mark of a message.
func TestOfAnAgentsSessionNoMoreThanABlockIsComputedAgain(t *testing.T) {
	opt := DefaultOptions()
	opt.Speculation, opt.Control = SpeculateOff, controls
	const blockLen = 16
	for seed := range uint64(6) {
		start(t, &toy.Model{States: 120, Vocab: 64}, 400, blockLen, opt, func(t *testing.T, r rig) {
			again, all := 0, 0
			agentSession(t, r, seed, func(prompt, known, computed int) {
				if n := computed - (prompt - known); n > blockLen+3 {
					t.Errorf("of a prompt of %d tokens, %d of them known, %d were computed", prompt, known, computed)
				} else {
					again, all = again+max(0, n), all+known
				}
			})
			if 50*again > all {
				t.Errorf("%d of %d tokens were computed again", again, all)
			}
		})
	}
}

// With few states the answers are the same, and of what was known most is still there.
func TestASessionWithFewStatesSaysTheSame(t *testing.T) {
	opt := DefaultOptions()
	opt.Control = controls
	for _, states := range []int{1, 2, 5, 9} {
		start(t, &toy.Model{States: states, Vocab: 64}, 400, 8, opt, func(t *testing.T, r rig) {
			agentSession(t, r, 7, func(int, int, int) {})
		})
	}
}

// A prompt that waits for what another one computes begins where they part, although no piece of that one ends there.
func TestAPromptThatWaitsForAnotherBeginsWhereTheyPart(t *testing.T) {
	m, opt := &toy.Model{States: 20}, DefaultOptions()
	opt.StepTokens = 32
	start(t, m, 400, 8, opt, func(t *testing.T, r rig) {
		shared, posted := counting(203), make(chan struct{})
		m.Before = func(*models.Batch) error {
			<-posted
			return nil
		}
		var all sync.WaitGroup
		for i := range int32(3) {
			s, err := r.Open(context.WithoutCancel(t.Context()), append(slices.Clone(shared), slices.Repeat([]int32{20 + i}, 100)...))
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				defer s.Close()
				collect(t, s, sampling.Params{MaxTokens: 1})
			})
		}
		synctest.Wait()
		close(posted)
		all.Wait()
		if n := m.Computed(); n != 203+3*100+2*3 { // of 203 tokens 200 are whole blocks
			t.Errorf("%d tokens were computed", n)
		}
	})
}
