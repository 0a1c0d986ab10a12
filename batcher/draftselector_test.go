package batcher

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

// coin drafts what a greedy model says, and makes a part of it wrong.
type coin struct {
	m       *toy.Model
	right   func(at int) float64 // how likely, of the token after so many
	random  *rand.Rand
	guessed int // tokens
	pass    func(rows int) time.Duration
	take    func(time.Duration) // lets time pass
}

func (*coin) Kind() DraftKind { return DraftMTP }

func (c *coin) Price(guesses []*Guess) float64 {
	var sum time.Duration
	for depth := 1; ; depth++ {
		rows := 0
		for _, g := range guesses {
			if g.Most >= depth {
				rows++
			}
		}
		if rows == 0 {
			return sum.Seconds()
		}
		sum += c.pass(rows)
	}
}

func (c *coin) Draft(guesses []*Guess, _ float64) error {
	c.take(seconds(c.Price(guesses)))
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

// coined runs streams of n tokens each with a coin, of which a pass takes a tenth of a step, and returns what it guessed,
// and the engine's counts.
func coined(t *testing.T, streams, n int, right func(at int) float64) (guessed int, st Stats) {
	synctest.Test(t, func(t *testing.T) {
		m := clocked(20*time.Millisecond, time.Millisecond/2, nil)
		c := &coin{m: m, right: right, random: rand.New(rand.NewPCG(1, 2)), take: time.Sleep}
		c.pass = func(int) time.Duration { return 2 * time.Millisecond }
		e, stop := coinEngine(t, c, SpeculateAuto)
		generateBeside(t, e, streams, n)
		stop()
		guessed, st = c.guessed, e.Stats()
	})
	return guessed, st
}

// coinEngine starts an engine of the coin's model.
func coinEngine(t *testing.T, c *coin, how Speculation) (e *Engine, stop func()) {
	opt := DefaultOptions()
	opt.Speculation, opt.Drafters, opt.Unread = how, []Drafter{c}, 1<<10
	e = New(c.m, c.m.NewCache(1024, 16), opt)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	return e, func() { cancel(); <-done }
}

// generateBeside generates n tokens in each of some streams.
func generateBeside(t *testing.T, e *Engine, streams, n int) {
	var seqs []*Sequence
	var params []sampling.Params
	for i := range streams {
		s, err := e.Open(t.Context(), append(counting(9), int32(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		seqs, params = append(seqs, s), append(params, sampling.Params{MaxTokens: n, IgnoreEOS: true})
	}
	for _, run := range GenerateAll(t.Context(), seqs, params) {
		for _, err := range run {
			if err != nil {
				t.Error(err)
			}
		}
	}
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

// TestADrafterSlowsNoCrowdDown has steps of a hybrid on two cores, whose first ones meet cold caches, on a machine that
// others use half of the time. What counts is the time that the work takes alone.
func TestADrafterSlowsNoCrowdDown(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	const n, runs = 64, 12
	step := func(rows int) time.Duration {
		return 13*time.Millisecond + time.Duration(rows)*2600*time.Microsecond - time.Duration(max(0, rows-8))*600*time.Microsecond
	}
	for _, busy := range []bool{false, true} {
		least := map[float64]float64{0: 0.97, 0.3: 0.97, 0.5: 0.97, 0.7: 0.97, 0.9: 1.05}
		if busy {
			least = map[float64]float64{0: 0.96, 0.3: 0.96, 0.5: 0.96, 0.7: 0.96, 0.9: 1}
		}
		work := func(streams int, right float64, how Speculation) (alone time.Duration) {
			synctest.Test(t, func(t *testing.T) {
				random, began, steps := rand.New(rand.NewPCG(7, 8)), time.Now(), 0
				take := func(d time.Duration) {
					alone += d
					slower := 1.0
					if busy {
						slower = math.Exp(0.3 * random.NormFloat64())
						if int(time.Since(began).Seconds()/3)%2 == 1 {
							slower *= 1 + 5*random.Float64()
						}
					}
					if steps <= 2 {
						slower *= 10
					}
					time.Sleep(time.Duration(float64(d) * slower))
				}
				m := &toy.Model{Before: func(b *models.Batch) error {
					steps++
					take(step(len(b.Tokens)))
					return nil
				}}
				c := &coin{m: m, right: func(int) float64 { return right }, random: rand.New(rand.NewPCG(1, 2)), take: take}
				c.pass = func(rows int) time.Duration { return time.Millisecond + time.Duration(rows)*300*time.Microsecond }
				e, stop := coinEngine(t, c, how)
				generateBeside(t, e, streams, n)
				alone = 0 // the first run tries what pays
				for range runs {
					generateBeside(t, e, streams, n)
				}
				stop()
			})
			return alone
		}
		for _, streams := range []int{1, 8, 2, 4} {
			without := work(streams, 0, SpeculateOff)
			for right, least := range least {
				gain := without.Seconds() / work(streams, right, SpeculateAuto).Seconds()
				t.Logf("busy %v, %d streams, %v of guesses right: %.2f", busy, streams, right, gain)
				if gain < least {
					t.Errorf("on a busy (%v) machine %d streams of whose guesses %v are right: %.3f times as fast, want at least %v", busy, streams, right, gain, least)
				}
			}
		}
	}
}
