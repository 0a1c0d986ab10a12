package batcher

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
)

// times holds the average times of short answers.
type times struct{ first, token time.Duration }

// answers lets clients ask one short question after another for so long.
func answers(t *testing.T, e *Engine, clients int, over time.Duration) (mean times) {
	const asked, tokens = 120, 12
	sums, counts := make([]times, clients), make([]int, clients)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for end := time.Now().Add(over); time.Now().Before(end); counts[i]++ {
				prompt := counting(asked)
				prompt[0], prompt[1], prompt[2] = int32(i), int32(counts[i]%50), int32(counts[i]/50%50)
				s, err := e.Open(t.Context(), prompt)
				if err != nil {
					t.Error(err)
					return
				}
				for range s.Generate(t.Context(), sampling.Params{MaxTokens: tokens, IgnoreEOS: true}) {
				}
				timing := s.Timing()
				sums[i].first += timing.FirstToken.Sub(timing.Opened)
				sums[i].token += timing.LastToken.Sub(timing.FirstToken) / (tokens - 1)
				s.Close()
				time.Sleep(time.Millisecond)
			}
		})
	}
	all.Wait()
	n := 0
	for i := range sums {
		mean.first += sums[i].first
		mean.token += sums[i].token
		n += counts[i]
	}
	return times{mean.first / time.Duration(n), mean.token / time.Duration(n)}
}

// judges read line after line, in the background, and count what they have read.
func judges(t *testing.T, e *Engine, n int) (judged *atomic.Int64) {
	judged = new(atomic.Int64)
	for range n {
		judge, err := e.OpenBackground(t.Context(), counting(40))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				judge.Append(counting(40)...)
				if _, err := judge.Logits(t.Context()); err != nil {
					return
				}
				judged.Add(1)
			}
		}()
	}
	return judged
}

func TestSearchesDelayAnswersThatComeAndGoNoMoreThanLongOnes(t *testing.T) {
	sweep.NoRace(t)
	for _, clients := range []int{2, 1}[:sweep.Cases(1, 2)] {
		engines(t, 2, func(t *testing.T, c *tally, e []*Engine) {
			alone := answers(t, e[0], clients, 3*time.Second)
			for i := range 128 {
				c.stream(e[0], true, int32(i%60), 2, 3)
			}
			judged := judges(t, e[1], 16)
			time.Sleep(time.Second)
			before, judgedBefore := c.counts(), judged.Load()
			beside := answers(t, e[0], clients, 8*time.Second)
			if ratio := float64(beside.token) / float64(alone.token); ratio > 2 {
				t.Errorf("%d clients: %v a token, alone %v: %.2f times; want at most twice", clients, beside.token, alone.token, ratio)
			}
			if ratio := float64(beside.first) / float64(alone.first); ratio > 3 {
				t.Errorf("%d clients: %v to the first token, alone %v: %.2f times; want at most three times", clients, beside.first, alone.first, ratio)
			}
			for i, n := range c.counts() {
				if n-before[i] < 4 {
					t.Errorf("%d clients: search %d gained %d tokens in 8 s", clients, i, n-before[i])
				}
			}
			if n := judged.Load() - judgedBefore; n < 100 {
				t.Errorf("%d clients: %d judgements in 8 s", clients, n)
			}
		})
	}
}

func TestPostsThatBringNoWorkDelayNoOtherEngine(t *testing.T) {
	engines(t, 2, func(t *testing.T, c *tally, e []*Engine) {
		c.stream(e[0], true, 1, 2, 3)
		judged := judges(t, e[1], 1)
		for range 300 { // comes during each engine's steps
			s, err := e[0].Open(t.Context(), counting(9))
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			time.Sleep(1700 * time.Microsecond)
		}
		before := judged.Load()
		time.Sleep(500 * time.Millisecond)
		if n := judged.Load() - before; n == 0 {
			t.Error("the verifier still waits")
		}
	})
}
