package batcher

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

// machine is a toy model whose steps take as long as a small model's on a CPU:
// 2 ms, 250 µs a token, and a tile more than the first 150 µs a token.
func machine() *toy.Model {
	return &toy.Model{Context: 8192, Before: func(b *models.Batch) error {
		n := len(b.Tokens)
		time.Sleep(2*time.Millisecond + time.Duration(min(n, Tile))*250*time.Microsecond + time.Duration(max(0, n-Tile))*150*time.Microsecond)
		return nil
	}}
}

// tally counts the tokens of sequences that are generated until the test's end.
type tally struct {
	t    *testing.T
	each []*atomic.Int64
}

func (c *tally) counts() []int {
	n := make([]int, len(c.each))
	for i, e := range c.each {
		n[i] = int(e.Load())
	}
	return n
}

// stream generates without end in a sequence of its own.
func (c *tally) stream(e *Engine, background bool, prompt ...int32) {
	open := e.Open
	if background {
		open = e.OpenBackground
	}
	s, err := open(c.t.Context(), prompt)
	if err != nil {
		c.t.Fatal(err)
	}
	c.follow(s)
}

func (c *tally) follow(s *Sequence) {
	seed, count := uint64(len(c.each)), new(atomic.Int64)
	c.each = append(c.each, count)
	go func() {
		for range s.Generate(c.t.Context(), sampling.Params{Temperature: 1, Seed: seed, IgnoreEOS: true}) {
			count.Add(1)
		}
	}()
}

// perToken is the time per token of the first n sequences, over so much time.
func (c *tally) perToken(n int, over time.Duration) time.Duration {
	before := c.counts()
	time.Sleep(over)
	synctest.Wait()
	after := c.counts()
	slowest := time.Duration(0)
	for i := range n {
		slowest = max(slowest, over/time.Duration(max(1, after[i]-before[i])))
	}
	return slowest
}

// engines runs f with so many engines that share an arbiter.
func engines(t *testing.T, n int, f func(t *testing.T, c *tally, e []*Engine)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		opt := DefaultOptions()
		opt.Arbiter = NewStepArbiter()
		var list []*Engine
		done := make(chan error)
		for range n {
			m := machine()
			e := New(m, m.NewCache(4096, 16), opt)
			list = append(list, e)
			go func() { done <- e.Run(ctx) }()
		}
		f(t, &tally{t: t}, list)
		cancel()
		for range n {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		for _, e := range list {
			checkEmpty(t, e)
		}
	})
}

func TestSearchesAtMostDoubleTheTimePerTokenOfStreamsAndAllAdvance(t *testing.T) {
	sweep.NoRace(t)
	for _, streams := range []int{20, 1, 2}[:sweep.Of(t, 1, 3)] {
		engines(t, 2, func(t *testing.T, c *tally, e []*Engine) {
			for range streams {
				c.stream(e[0], false, 1, 2, 3)
			}
			alone := c.perToken(streams, 2*time.Second)
			for i := range 32 { // searches of 16 candidates, each with a verifier's sequence
				root, err := e[0].OpenBackground(t.Context(), counting(30+i))
				if err != nil {
					t.Fatal(err)
				}
				forks, err := root.Fork(t.Context(), 16)
				if err != nil {
					t.Fatal(err)
				}
				for _, k := range forks {
					c.follow(k)
				}
			}
			judged := 0
			judge, err := e[1].OpenBackground(t.Context(), counting(40))
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for {
					judge.Append(counting(12)...)
					if _, err := judge.Logits(t.Context()); err != nil {
						return
					}
					judged++
				}
			}()
			time.Sleep(time.Second)
			beside := c.perToken(streams, 8*time.Second)
			if ratio := float64(beside) / float64(alone); ratio > 1.9 || ratio < 1.5 {
				t.Errorf("%d streams: %v a token, alone %v: %.2f times; want at most twice, and not much less", streams, beside, alone, ratio)
			}
			for i, n := range c.counts() {
				if n < 4 {
					t.Errorf("%d streams: sequence %d has %d tokens after 9 s", streams, i, n)
				}
			}
			if judged < 20 {
				t.Errorf("%d streams: the verifier judged %d times in 9 s", streams, judged)
			}
		})
	}
}

func TestALongPromptSlowsStreamsDownByHalfWhicheverEngineComputesIt(t *testing.T) {
	sweep.NoRace(t)
	for _, at := range []int{1, 0}[:sweep.Cases(1, 2)] {
		engines(t, 2, func(t *testing.T, c *tally, e []*Engine) {
			for range 4 {
				c.stream(e[0], false, 5)
			}
			alone := c.perToken(4, 2*time.Second)
			for i := range 2 { // one after the other
				prompt := counting(4096)
				prompt[0] = int32(i)
				s, err := e[at].Open(t.Context(), prompt)
				if err != nil {
					t.Fatal(err)
				}
				before, begin := c.counts(), time.Now()
				if _, err := s.Logits(t.Context()); err != nil {
					t.Fatal(err)
				}
				beside := time.Since(begin) / time.Duration(c.counts()[0]-before[0])
				s.Close()
				if ratio := float64(beside) / float64(alone); ratio > 1.53 || ratio < 1.3 {
					t.Errorf("engine %d: %v a token, alone %v: %.2f times; want one and a half", at, beside, alone, ratio)
				}
			}
		})
	}
}

func TestEachPromptThatWaitsSlowsStreamsDownByAsMuch(t *testing.T) {
	sweep.NoRace(t)
	for _, prompts := range []int{2, 4} {
		engines(t, 2, func(t *testing.T, c *tally, e []*Engine) {
			for range 4 {
				c.stream(e[0], false, 5)
			}
			alone := c.perToken(4, 2*time.Second)
			for i := range prompts {
				prompt := counting(4096)
				prompt[0] = int32(i)
				c.stream(e[i%2], false, prompt...)
			}
			c.perToken(4, 100*time.Millisecond) // the first tokens of prompts are lent
			beside, all := c.perToken(4, time.Second), c.counts()
			if slices.Max(all[4:]) > 0 {
				t.Fatalf("%d prompts: one was done too soon: %v", prompts, all)
			}
			got, want := float64(beside)/float64(alone), 1+0.45*float64(prompts)
			if got < 0.9*want || got > 1.1*want {
				t.Errorf("%d prompts: %v a token, alone %v: %.2f times, want %.2f", prompts, beside, alone, got, want)
			}
		})
	}
}

func TestManyPromptsAreNotHeldUpByOneStream(t *testing.T) {
	engines(t, 1, func(t *testing.T, c *tally, e []*Engine) {
		for i := range 32 {
			prompt := counting(200)
			prompt[0] = int32(i)
			c.stream(e[0], false, prompt...)
		}
		time.Sleep(3 * time.Second) // alone, 6400 tokens take about 1 s; the last prompts are long done
		synctest.Wait()
		if slices.Min(c.counts()) < 30 {
			t.Errorf("some were held up: %v", c.counts())
		}
	})
}

func TestAWaitingEngineGoesOnWhenTheStreamsEnd(t *testing.T) {
	engines(t, 2, func(t *testing.T, c *tally, e []*Engine) {
		ctx, stop := context.WithCancel(t.Context())
		s, err := e[0].Open(ctx, []int32{1})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range s.Generate(ctx, sampling.Params{IgnoreEOS: true}) {
			}
		}()
		time.Sleep(100 * time.Millisecond)
		done := make(chan struct{})
		judge, err := e[1].OpenBackground(t.Context(), counting(4000))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = judge.Logits(t.Context()); close(done) }()
		time.Sleep(100 * time.Millisecond)
		stop()
		time.Sleep(800 * time.Millisecond) // 4000 tokens alone take 0.6 s
		select {
		case <-done:
		default:
			t.Error("the verifier still waits")
		}
	})
}

func TestAnInteractivePromptTakesTheBlocksOfSearches(t *testing.T) {
	m := machine()
	start(t, m, 64, 16, DefaultOptions(), func(t *testing.T, r rig) {
		c := &tally{t: t}
		for i := range 16 { // together they grow beyond the pool
			s, err := r.OpenBackground(t.Context(), append(counting(40), int32(i)))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			c.follow(s)
		}
		time.Sleep(time.Second)
		begin := time.Now()
		s := r.open(counting(600)...)
		defer s.Close()
		if _, err := s.Logits(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 400*time.Millisecond { // alone about 0.1 s
			t.Errorf("a prompt of 600 tokens beside searches took %v", took)
		}
		if st := r.Stats(); st.Preemptions == 0 {
			t.Error("no search was preempted")
		}
		before := c.counts()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		for i, n := range c.counts() {
			if n == before[i] && n < 900 {
				t.Errorf("search %d no longer advances", i)
			}
		}
	})
}

func TestSearchesLeavePlacesForOthers(t *testing.T) {
	m, opt := &toy.Model{}, DefaultOptions()
	opt.Queue, opt.Sequences = 8, 16
	e := New(m, m.NewCache(8, 8), opt)
	n := 0
	for ; ; n++ {
		if _, err := e.OpenBackground(t.Context(), []int32{1}); err != nil {
			break
		}
	}
	if n != 6 {
		t.Errorf("%d searches were let in, want 6 of 8", n)
	}
	if _, err := e.Open(t.Context(), []int32{1}); err != nil {
		t.Errorf("an interactive sequence beside them: %v", err)
	}
}

func TestEqualBeginningsOfPromptsThatArriveTogetherAreComputedOnce(t *testing.T) {
	m := machine()
	start(t, m, 1024, 16, DefaultOptions(), func(t *testing.T, r rig) {
		const requests, shared, own = 32, 480, 10
		var list []*Sequence
		for i := range requests {
			prompt := append(counting(shared), slices.Repeat([]int32{int32(i)}, own)...)
			s := r.open(prompt...)
			defer s.Close()
			list = append(list, s)
		}
		done := make(chan error)
		for _, s := range list {
			go func() { _, err := s.Logits(t.Context()); done <- err }()
		}
		for range list {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if got, want := m.Computed(), shared+requests*own; got > want+requests {
			t.Errorf("%d tokens computed for %d requests, want %d", got, requests, want)
		}
	})
}

func TestAnInteractivePromptDoesNotWaitForASearchThatComputesItsBeginning(t *testing.T) {
	engines(t, 1, func(t *testing.T, c *tally, e []*Engine) {
		c.stream(e[0], false, 9) // holds the search up
		time.Sleep(100 * time.Millisecond)
		search, err := e[0].OpenBackground(t.Context(), counting(4000))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = search.Logits(t.Context()) }()
		time.Sleep(50 * time.Millisecond)
		s, err := e[0].Open(t.Context(), counting(64))
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := s.Logits(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 60*time.Millisecond {
			t.Errorf("64 tokens took %v", took)
		}
	})
}
