package batcher

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/toy"
)

// coin drafts what a greedy model says, and makes a part of it wrong. A pass takes a tenth of a step.
type coin struct {
	m       *toy.Model
	right   func(at int) float64 // how likely, of the token after so many
	random  *rand.Rand
	guessed int // tokens
}

const coinPass = 2 * time.Millisecond

func (*coin) Kind() DraftKind { return DraftMTP }

func (*coin) Price(guesses []*Guess) float64 {
	most := 0
	for _, g := range guesses {
		most = max(most, g.Most)
	}
	return float64(most) * coinPass.Seconds()
}

func (c *coin) Draft(guesses []*Guess, _ float64) error {
	time.Sleep(time.Duration(c.Price(guesses) * float64(time.Second)))
	for _, g := range guesses {
		all := slices.Clone(g.Text)
		for range g.Most {
			right := vector.Argmax(c.m.Row(all))
			all = append(all, int32(right))
			if c.random.Float64() >= c.right(len(all)) {
				right++
			}
			g.Tokens = append(g.Tokens, int32(right))
			c.guessed++
		}
	}
	return nil
}

// coined runs streams of n tokens each with a coin, and returns what it guessed, and the engine's counts.
func coined(t *testing.T, streams, n int, right func(at int) float64) (guessed int, st Stats) {
	synctest.Test(t, func(t *testing.T) {
		m := clocked(20*time.Millisecond, time.Millisecond/2, nil)
		c := &coin{m: m, right: right, random: rand.New(rand.NewPCG(1, 2))}
		opt := DefaultOptions()
		opt.Speculation, opt.Drafters, opt.Unread = SpeculateAuto, []Drafter{c}, n+1
		e := New(m, m.NewCache(1024, 16), opt)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx) }()
		var seqs []*Sequence
		var params []sampling.Params
		for i := range streams {
			s, err := e.Open(ctx, append(counting(9), int32(i)))
			if err != nil {
				t.Fatal(err)
			}
			seqs, params = append(seqs, s), append(params, sampling.Params{MaxTokens: n, IgnoreEOS: true})
		}
		for _, run := range GenerateAll(ctx, seqs, params) {
			for _, err := range run {
				if err != nil {
					t.Error(err)
				}
			}
		}
		for _, s := range seqs {
			s.Close()
		}
		cancel()
		<-done
		guessed, st = c.guessed, e.Stats()
	})
	return guessed, st
}

func TestADrafterThatIsWrongIsTriedAfterGrowingPauses(t *testing.T) {
	const n = 256
	for streams, most := range map[int]int{1: 25, 8: 150} {
		if got, st := coined(t, streams, n, func(int) float64 { return 0 }); got == 0 || got > most {
			t.Errorf("of %d streams of %d tokens %d tokens were guessed, all wrong, want at most %d: %+v", streams, n, got, most, st.DraftTokens)
		}
	}
}

func TestADrafterThatIsMostlyRightGoesOn(t *testing.T) {
	const n = 256
	for streams, most := range map[int]int64{1: 125, 8: 190} { // steps: 2.5 tokens each would be 103
		got, st := coined(t, streams, n, func(int) float64 { return 0.7 })
		if st.Steps > most || got < n {
			t.Errorf("of %d streams of %d tokens %d were guessed in %d steps, want at most %d: %+v", streams, n, got, st.Steps, most, st.DraftAccepted)
		}
	}
}

func TestADrafterThatHasBecomeRightIsUsedAgain(t *testing.T) {
	const wrong, n = 200, 600
	for _, streams := range []int{1, 8} {
		_, st := coined(t, streams, n, func(at int) float64 {
			if at < wrong {
				return 0
			}
			return 0.8
		})
		if right := st.DraftAccepted[DraftMTP] / int64(streams); right < (n-wrong)/3 {
			t.Errorf("of %d streams' last %d tokens %d each were guessed", streams, n-wrong, right)
		}
	}
}
