package batcher

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

// counting is the prompt 0, 1, 2, ... of n tokens.
func counting(n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32(i % 64)
	}
	return p
}

// everyOption are parameters that use each option at least once.
var everyOption = []sampling.Params{
	{},
	{Temperature: 1},
	{Temperature: 0.8, TopK: 8},
	{Temperature: 1.2, TopP: 0.9},
	{Temperature: 1, MinP: 0.05},
	{Temperature: 1, TypicalP: 0.8},
	{Temperature: 1, RepetitionPenalty: 1.4},
	{Temperature: 1, PresencePenalty: 1, FrequencyPenalty: 0.5},
	{Temperature: 1, LogitBias: map[int32]float32{3: 4, 9: -100}},
	{Temperature: 1, Logprobs: true, TopLogprobs: 3},
	{Temperature: 1, Constraint: allowing(func(mask []uint64, completion []int32) { mask[0] = 0x5555 << (len(completion) % 32) }).begin()},
	{Temperature: 1, TopK: 9, Constraint: newRails(func(at int) (int32, bool) { return int32(at % 40), at%3 == 0 })},
	{Temperature: 0.7, TopK: 20, TopP: 0.95, MinP: 0.01, RepetitionPenalty: 1.1, PresencePenalty: 0.2, Seed: 99, Candidate: 5},
}

func TestNeighboursNeverChangeTokens(t *testing.T) {
	const n = 20
	prompt := []int32{5, 4, 3, 2, 1}
	var alone [][]int32
	for _, p := range everyOption {
		p.MaxTokens = n
		start(t, &toy.Model{}, 64, 4, DefaultOptions(), func(t *testing.T, r rig) {
			s := r.open(prompt...)
			defer s.Close()
			alone = append(alone, collect(t, s, p))
		})
	}
	for i, got := range alone {
		p := everyOption[i]
		if p.Constraint == nil {
			if want := expect(&toy.Model{}, prompt, n, p); !slices.Equal(got, want) {
				t.Errorf("%+v: alone %v, want %v", p, got, want)
			}
		}
	}
	pool := pool.New(2)
	defer pool.Close()
	for name, opt := range map[string]Options{"one worker": {}, "two workers": {Pool: pool}} {
		o := DefaultOptions()
		o.Pool = opt.Pool
		// A pool of blocks too small for all, so that some are preempted.
		slow := &toy.Model{Before: func(*models.Batch) error { time.Sleep(time.Millisecond); return nil }}
		start(t, slow, 30, 4, o, func(t *testing.T, r rig) {
			done := make(chan struct{})
			for i := range 32 {
				go func() {
					defer func() { done <- struct{}{} }()
					p, prompt := everyOption[i%len(everyOption)], prompt
					p.MaxTokens = n
					s := r.open(prompt...)
					defer s.Close()
					if got, want := collect(t, s, p), alone[i%len(everyOption)]; !slices.Equal(got, want) {
						t.Errorf("%s: %+v: among others %v, want %v", name, p, got, want)
					}
				}()
			}
			for range 32 {
				<-done
			}
			if r.Stats().Preemptions == 0 {
				t.Error("no sequence was preempted")
			}
		})
	}
}

func TestACancelledSequenceFreesItsBlocksAtTheNextStep(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps int
	}{{"in the queue", 0}, {"in prefill", 1}, {"in decode", 4}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &toy.Model{}
				opt := DefaultOptions()
				opt.StepTokens = Tile
				e := New(m, m.NewCache(32, 4), opt)
				ctx, cancel := context.WithCancel(t.Context())
				s, err := e.Open(ctx, counting(60))
				if err != nil {
					t.Fatal(err)
				}
				got := make(chan error, 1)
				go func() {
					for _, err := range s.Generate(t.Context(), sampling.Params{}) {
						if err != nil {
							got <- err
						}
					}
				}()
				synctest.Wait()
				for range c.steps {
					if _, err := e.Step(); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				if c.steps > 0 && e.loop.kv.Free() == e.loop.kv.Blocks() {
					t.Fatal("the sequence holds no blocks")
				}
				cancel()
				synctest.Wait()
				if st, err := e.Step(); err != nil || st.Tokens != 0 {
					t.Errorf("the next step computes %d tokens, %v", st.Tokens, err)
				}
				if err := <-got; !errors.Is(err, context.Canceled) {
					t.Errorf("Generate: %v, want context.Canceled", err)
				}
				checkEmpty(t, e)
			})
		})
	}
}

func TestStoppingTheEngineEndsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &toy.Model{Before: func(*models.Batch) error { time.Sleep(time.Millisecond); return nil }}
		e := New(m, m.NewCache(8, 8), DefaultOptions())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go e.Run(ctx)
		s, _ := e.Open(t.Context(), []int32{1})
		n := 0
		for _, err := range s.Generate(t.Context(), sampling.Params{}) {
			if n++; n == 5 {
				cancel()
			}
			if err != nil && !errors.Is(err, ErrClosed) {
				t.Errorf("Generate: %v, want ErrClosed", err)
			}
		}
		synctest.Wait()
		checkEmpty(t, e)
	})
}

func TestASlowReaderIsSuspendedAndStallsNobody(t *testing.T) {
	m, opt := &toy.Model{}, DefaultOptions()
	opt.Unread = 8
	want := expect(m, []int32{1, 2}, 50, sampling.Params{})
	start(t, m, 64, 4, opt, func(t *testing.T, r rig) {
		slow, quick := r.open(1, 2), r.open(1, 2)
		defer slow.Close()
		defer quick.Close()
		var got []int32
		for tok, err := range slow.Generate(t.Context(), sampling.Params{MaxTokens: 50}) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, tok.ID); len(got) == 1 {
				if q := collect(t, quick, sampling.Params{MaxTokens: 50}); !slices.Equal(q, want) {
					t.Errorf("beside a slow reader %v, want %v", q, want)
				}
				synctest.Wait()
				slow.mu.Lock()
				if n := len(slow.content.unread); n > 8 {
					t.Errorf("%d tokens wait for the reader, want 8 at most", n)
				}
				slow.mu.Unlock()
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("slow reader got %v, want %v", got, want)
		}
	})
}

func TestEqualPromptsAtOnceAreComputedOnce(t *testing.T) {
	m, opt := &toy.Model{Before: func(*models.Batch) error { time.Sleep(time.Millisecond); return nil }}, DefaultOptions()
	opt.StepTokens = Tile
	start(t, m, 256, 4, opt, func(t *testing.T, r rig) {
		done := make(chan struct{})
		for range 8 {
			s := r.open(counting(200)...)
			go func() {
				defer func() { s.Close(); done <- struct{}{} }()
				if _, err := s.Logits(t.Context()); err != nil {
					t.Error(err)
				}
			}()
		}
		for range 8 {
			<-done
		}
		// 200 for the first, the last block of 4 for each of the others.
		if got := m.Computed(); got > 200+7*4 {
			t.Errorf("computed %d tokens, want %d at most", got, 200+7*4)
		}
		if st := r.Stats(); st.PrefixHits != 7*196 {
			t.Errorf("%d prefix hits, want %d", st.PrefixHits, 7*196)
		}
	})
}

func TestStepsStayShortWhileALongPromptIsComputed(t *testing.T) {
	m, opt := &toy.Model{}, DefaultOptions()
	m.Before = func(b *models.Batch) error { // 10 ms and 10 ms a tile
		time.Sleep(time.Duration(1+schedule.WholeTiles(len(b.Tokens))/Tile) * 10 * time.Millisecond)
		return nil
	}
	opt.StepTime = 60 * time.Millisecond
	var longest time.Duration
	mixed := -1 // the stream's own prompt is none
	opt.OnStep = func(st StepStats) {
		if st.Sampled > 0 && st.Tokens > 1 {
			mixed++
			longest = max(longest, st.Duration)
		}
	}
	start(t, m, 256, 16, opt, func(t *testing.T, r rig) {
		s := r.open(counting(100)...)
		defer s.Close()
		n := 0
		done := make(chan struct{})
		for range s.Generate(t.Context(), sampling.Params{MaxTokens: 40}) {
			if n++; n == 5 {
				go func() {
					defer close(done)
					long := r.open(append([]int32{9}, counting(1500)...)...)
					defer long.Close()
					if _, err := long.Logits(t.Context()); err != nil {
						t.Error(err)
					}
				}()
			}
		}
		<-done
	})
	// 1500 tokens in steps of at most 5 tiles.
	if mixed < 8 || longest > opt.StepTime {
		t.Errorf("%d mixed steps, the longest of %v; want 8 or more of at most %v", mixed, longest, opt.StepTime)
	}
}

func TestAnIdleEngineParks(t *testing.T) {
	start(t, &toy.Model{}, 8, 8, DefaultOptions(), func(t *testing.T, r rig) {
		s := r.open(1, 2, 3)
		defer s.Close()
		if _, err := s.Logits(t.Context()); err != nil {
			t.Error(err)
		}
		before := time.Now()
		time.Sleep(time.Hour) // fake time passes only when every goroutine is blocked
		if time.Since(before) != time.Hour || r.model.Steps() != 1 {
			t.Errorf("%d steps, want 1", r.model.Steps())
		}
	})
}

func TestTimingHoldsTheTimesOfASequencesStages(t *testing.T) {
	m := &toy.Model{Before: func(*models.Batch) error { time.Sleep(time.Second); return nil }}
	start(t, m, 32, 4, DefaultOptions(), func(t *testing.T, r rig) {
		for i, cached := range []int{0, 8} {
			s := r.open(counting(11)...)
			begin := time.Now()
			collect(t, s, sampling.Params{MaxTokens: 3})
			got := s.Timing()
			want := Timing{Opened: begin, Started: begin, FirstToken: begin.Add(time.Second), LastToken: begin.Add(3 * time.Second), CachedPrompt: cached}
			if got != want {
				t.Errorf("sequence %d: %+v, want %+v", i, got, want)
			}
			s.Close()
		}
	})
}

func TestAppendAndLogitsInsideALoopActOnWhatWasRead(t *testing.T) {
	m := &toy.Model{}
	start(t, m, 64, 4, DefaultOptions(), func(t *testing.T, r rig) {
		s := r.open(1, 2, 3)
		defer s.Close()
		all := []int32{1, 2, 3}
		n := 0
		for tok, err := range s.Generate(t.Context(), sampling.Params{MaxTokens: 12}) {
			if err != nil {
				t.Fatal(err)
			}
			if want := int32(vector.Argmax(m.Row(all))); tok.ID != want {
				t.Errorf("token %d after %v, want %d", tok.ID, all, want)
			}
			all = append(all, tok.ID)
			switch n++; n {
			case 3:
				s.Append(42, 43)
				all = append(all, 42, 43)
			case 6:
				row, err := s.Logits(t.Context(), 7, 8)
				if want := m.Row(all)[7:9]; err != nil || !slices.Equal(row, want) {
					t.Errorf("Logits = %v, %v; want %v", row, err, want)
				}
			case 9:
				forks, err := s.Fork(t.Context(), 2)
				if err != nil {
					t.Fatal(err)
				}
				for _, k := range forks {
					if got, want := collect(t, k, sampling.Params{MaxTokens: 2}), expect(m, all, 2, sampling.Params{}); !slices.Equal(got, want) {
						t.Errorf("fork gave %v, want %v", got, want)
					}
					k.Close()
				}
			}
		}
		if n != 12 || s.Len() != 3+12+2 {
			t.Errorf("%d tokens, length %d; want 12, 17", n, s.Len())
		}
	})
}

func TestADecodeStepAllocatesNothing(t *testing.T) {
	m := &toy.Model{Vocab: 64, Context: 1 << 16}
	opt := DefaultOptions()
	opt.Unread = 1 << 15
	e := New(m, m.NewCache(256, 256), opt)
	for i := range 8 {
		s, err := e.Open(t.Context(), []int32{int32(i)})
		if err != nil {
			t.Fatal(err)
		}
		s.content.tokens = slices.Grow(s.content.tokens, 1<<12)
		s.content.unread = make([]sampling.Token, 0, 1<<12)
		s.mu.Lock()
		s.submit(request{kind: wantTokens, params: sampling.Params{Temperature: 1, TopK: 8}, left: 1 << 12})
		s.mu.Unlock()
	}
	step := func() {
		if st, err := e.Step(); err != nil || st.Sampled != 8 {
			t.Fatalf("step: %+v, %v", st, err)
		}
	}
	for range 20 {
		step()
	}
	// A new block a sequence is taken every 256 tokens; 100 steps stay within one.
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

func TestACallerWhoLeavesBetweenPlanAndBatchIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &toy.Model{}
		e := New(m, m.NewCache(8, 4), DefaultOptions())
		s, err := e.Open(t.Context(), []int32{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for range s.Generate(ctx, sampling.Params{}) {
			}
		}()
		synctest.Wait()
		e.loop.drain()
		e.loop.admission.admit()
		e.loop.plan()
		if len(e.loop.step.spans) != 1 || s.task.kv.Len() != 3 {
			t.Fatalf("%d spans, %d positions; want 1, 3", len(e.loop.step.spans), s.task.kv.Len())
		}
		cancel()
		synctest.Wait()
		if e.loop.assemble(); e.loop.step.Tokens != 0 || s.task.kv.Len() != 0 {
			t.Errorf("%d tokens, %d positions; want none", e.loop.step.Tokens, s.task.kv.Len())
		}
		s.Close()
		if _, err := e.Step(); err != nil {
			t.Error(err)
		}
		checkEmpty(t, e)
	})
}
