package search_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/reward"
	. "github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// judged adds a toy reward model on an engine of its own.
func judged(t *testing.T, m *tts.Model, written string, verifier *toy.Model, blocks int) (Search, *tts.Model) {
	t.Helper()
	verifier.Outputs = 1
	prm := ttstest.RunOn(t, verifier, blocks, batcher.DefaultOptions())
	v, err := reward.New(prm, reward.Formats()[0])
	if err != nil {
		t.Fatal(err)
	}
	return Search{Model: m, Plan: plan(t, written), Verifiers: tts.Verifiers{Default: "prm", ByName: map[string]tts.Scorer{"prm": v}}}, prm
}

// empty reports whether nothing runs and no block is held.
func empty(m *tts.Model) bool {
	st := m.Engine.Stats()
	return st.Used == 0 && st.Running == 0 && st.Waiting == 0 && st.Idle == 0
}

func TestASearchCancelledAtAnyStepFreesBothEngines(t *testing.T) {
	for _, written := range []string{"beam8x2", "sc8;verifier=prm", "auto;n=8", "abon8", "deepconf8;deepconf.window=2", "pf8"} {
		synctest.Test(t, func(t *testing.T) {
			var left atomic.Int64 // engine steps until the cancellation
			var cancel atomic.Value
			count := func(*models.Batch) error {
				if left.Add(-1) == 0 {
					cancel.Load().(context.CancelFunc)()
				}
				return nil
			}
			model := ttstest.Thinks(t)
			model.Before = count
			m := ttstest.RunOn(t, model, 256, batcher.DefaultOptions())
			s, prm := judged(t, m, written, &toy.Model{Before: count}, 256)
			for after := int64(1); ; after++ {
				ctx, end := context.WithCancel(t.Context())
				cancel.Store(end)
				left.Store(after)
				var last error
				whole := false
				for e, err := range s.Run(ctx, ttstest.Request(1, 1)) {
					d := ttstest.Flatten(e)
					last, whole = err, whole || d.Outcome != nil
				}
				synctest.Wait()
				if !empty(m) || !empty(prm) {
					t.Fatalf("%s cancelled at step %d: %+v and %+v are left", written, after, m.Engine.Stats(), prm.Engine.Stats())
				}
				if !whole && !errors.Is(last, context.Canceled) {
					t.Fatalf("%s cancelled at step %d ended with %v", written, after, last)
				}
				end()
				if left.Load() > 0 {
					return // it ended before
				}
			}
		})
	}
}

func TestAReaderThatLeavesASearchFreesBothEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ttstest.RunOn(t, ttstest.Thinks(t), 256, batcher.DefaultOptions())
		for _, written := range []string{"beam8x2", "sc8;verifier=prm", "auto;n=8", "abon8", "deepconf8", "pf8"} {
			s, prm := judged(t, m, written, &toy.Model{}, 256)
			for stay := range 30 {
				n := 0
				for range s.Run(t.Context(), ttstest.Request(1, 1)) {
					if n++; n > stay {
						break
					}
				}
				synctest.Wait()
				if !empty(m) || !empty(prm) {
					t.Fatalf("%s left after %d deltas: %+v and %+v are left", written, stay+1, m.Engine.Stats(), prm.Engine.Stats())
				}
			}
		}
	})
}

func TestLosersGiveTheirMemoryBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ttstest.RunOn(t, ttstest.Thinks(t), 256, batcher.DefaultOptions())
		s, prm := judged(t, m, "beam16x4", &toy.Model{}, 256)
		for e, err := range s.Run(t.Context(), ttstest.Request(1, 1)) {
			if err != nil {
				t.Fatal(err)
			}
			d := ttstest.Flatten(e)
			if d.Progress == nil {
				continue
			}
			synctest.Wait()
			for _, e := range []*tts.Model{m, prm} {
				if n := e.Engine.Stats().Idle; n > 4 {
					t.Errorf("after step %d %s holds %d sequences, want the 4 survivors", d.Progress.Step, e.Name, n)
				}
			}
		}
	})
}

func TestASearchTooLargeForTheKVPoolShrinks(t *testing.T) {
	m := ttstest.RunOn(t, ttstest.Thinks(t), 12, batcher.DefaultOptions())
	for _, written := range []string{"beam16x4", "dvts16x4", "sc16", "bon16", "auto;n=16", "abon16;adaptive.first=16", "deepconf16;deepconf.warmup=16", "pf16"} {
		got := carryOut(t, scriptedSearch(t, m, written), ttstest.Request(1, 1))
		if !got.Degraded || got.text[0] == "" {
			t.Errorf("%s on 12 blocks: degraded %v, text %q", written, got.Degraded, got.text[0])
		}
	}
	if got := carryOut(t, scriptedSearch(t, m, "beam4x2"), ttstest.Request(1, 1)); got.Degraded {
		t.Error("a search that fits was degraded")
	}
}

func TestASearchThatIsRefusedSequencesShrinks(t *testing.T) {
	opt := batcher.DefaultOptions()
	opt.Sequences = 6
	for _, written := range []string{"beam16x4", "dvts16x4", "sc16", "bon16", "auto;n=16", "abon16;adaptive.first=16", "deepconf16;deepconf.warmup=16", "pf16"} {
		m := ttstest.RunOn(t, ttstest.Thinks(t), 256, opt)
		got := carryOut(t, scriptedSearch(t, m, written), ttstest.Request(1, 1))
		if !got.Degraded || got.text[0] == "" {
			t.Errorf("%s with 6 sequences: degraded %v, text %q", written, got.Degraded, got.text[0])
		}
	}
}

func TestBudgetsEndWithTheBestSoFar(t *testing.T) {
	for _, method := range []string{"beam16x4", "dvts8x2", "sc16;early_stop=false", "bon8;early_stop=false", "auto;n=16", "abon8;early_stop=false;adaptive.threshold=1;adaptive.price=0.000001", "deepconf16;early_stop=false", "pf16"} {
		synctest.Test(t, func(t *testing.T) {
			model := ttstest.Thinks(t)
			model.Before = func(*models.Batch) error { time.Sleep(10 * time.Millisecond); return nil }
			m := ttstest.RunOn(t, model, 512, batcher.DefaultOptions())
			for _, tokens := range []int{1, 20, 45, 70} {
				got := carryOut(t, scriptedSearch(t, m, fmt.Sprintf("%s;budget.tokens=%d", method, tokens)), ttstest.Request(1, 1))
				cut := slices.ContainsFunc(got.Candidates, func(c *tts.Candidate) bool { return c.Finish == "" })
				if n := got.usage.Completion; n != tokens || got.usage.Cancelled != 0 || got.Reason != tts.StopBudgetTokens && (got.Reason != tts.StopComplete || cut) {
					t.Errorf("%s: %d tokens of a budget of %d, %s", method, n, tokens, got.Reason)
				}
			}
			for _, ms := range []int{1, 35, 70} {
				begin := time.Now()
				got := carryOut(t, scriptedSearch(t, m, fmt.Sprintf("%s;budget.time_ms=%d", method, ms)), ttstest.Request(1, 1))
				if took := time.Since(begin).Milliseconds(); took > int64(ms)+20 || got.Reason != tts.StopBudgetTime {
					t.Errorf("%s: %d ms of a budget of %d, %s", method, took, ms, got.Reason)
				}
			}
		})
	}
}

func TestMaxStepsEndWithTheBestSoFar(t *testing.T) {
	m := ttstest.Run(t, ttstest.Says(t, nil, "")) // ends at once where the prompt is empty, else goes on for ever
	s := scriptedSearch(t, m, "beam8x2;max_steps=3;step.max_tokens=5")
	got := carryOut(t, s, ttstest.Request(1, 1))
	if got.Reason != tts.StopMaxSteps || got.Steps != 3 || len(got.Choices[0].IDs) != 15 || got.Choices[0].Finish != "" {
		t.Errorf("%s after %d steps with %d tokens", got.Reason, got.Steps, len(got.Choices[0].IDs))
	}
}

func TestTheTokenLimitEndsEveryCandidate(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	for _, written := range []string{"beam8x2", "sc8", "bon8", "asc8", "deepconf8", "pf8"} {
		req := ttstest.Request(1, 2)
		req.Sampling.MaxTokens = 5
		for _, c := range carryOut(t, scriptedSearch(t, m, written), req).Candidates {
			if len(c.IDs) > 5 || c.Finish != tts.FinishLength {
				t.Errorf("%s: a candidate of %d tokens ended with %q", written, len(c.IDs), c.Finish)
			}
		}
	}
}

func TestStopStringsAreCutFromEveryCandidate(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	for _, written := range []string{"beam8x2", "sc8", "bon8", "asc8", "deepconf8", "pf8"} {
		req := ttstest.Request(1, 1)
		req.Stop = []string{"\nAnswer"}
		for _, c := range carryOut(t, scriptedSearch(t, m, written), req).Candidates {
			if c.Finish != tts.FinishStop || c.Text[len(c.Text)-1] != '.' {
				t.Errorf("%s: a candidate %q ended with %q", written, c.Text, c.Finish)
			}
		}
	}
}

func TestLogprobsComeWithTheTextTheyBelongTo(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	for _, written := range []string{"beam8x2", "sc8", "deepconf8", "pf8"} {
		req := ttstest.Request(1, 2)
		req.Sampling.Logprobs, req.Sampling.TopLogprobs = true, 2
		text, listed := make([]string, 2), make([]string, 2)
		for e, err := range scriptedSearch(t, m, written).Run(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			d := ttstest.Flatten(e)
			text[d.Choice] += d.Text
			for _, tok := range d.Tokens {
				if !tok.End {
					listed[d.Choice] += string(tok.Bytes)
				}
				if !tok.Known || len(tok.Top) != 2 || tok.Logprob > 0 {
					t.Errorf("%s: token %+v", written, tok)
				}
			}
		}
		if text[0] == "" || text[0] != listed[0] || text[1] != listed[1] {
			t.Errorf("%s: the tokens spell %q, want %q", written, listed, text)
		}
	}
}

func TestASearchThatIsGivenUpReportsItsCost(t *testing.T) {
	for _, written := range []string{"sc8", "beam8x2", "abon8", "deepconf8", "pf8"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			model, steps := ttstest.Thinks(t), 0
			model.Before = func(*models.Batch) error {
				if steps++; steps == 20 {
					cancel()
				}
				return nil
			}
			m := ttstest.RunOn(t, model, 256, batcher.DefaultOptions())
			req := ttstest.Request(1, 1)
			req.Stop = []string{"never said"} // so that rows take in each token
			var u tts.Usage
			for e := range scriptedSearch(t, m, written).Run(ctx, req) {
				d := ttstest.Flatten(e)
				u.Add(d.Usage)
			}
			if u.Completion+u.Cancelled < 8 {
				t.Errorf("%s: %+v after twenty steps of eight candidates", written, u)
			}
		})
	}
}

func TestSolutionsLongerThanTheVerifierReadsKeepTheirScores(t *testing.T) {
	opt := batcher.DefaultOptions()
	opt.Context = 14
	v, err := reward.New(ttstest.RunOn(t, &toy.Model{Outputs: 1}, 64, opt), reward.Formats()[0])
	if err != nil {
		t.Fatal(err)
	}
	s := Search{Model: ttstest.Run(t, ttstest.Thinks(t)), Plan: plan(t, "beam8x2"), Verifiers: tts.Verifiers{Default: "short", ByName: map[string]tts.Scorer{"short": v}}}
	for _, c := range carryOut(t, s, ttstest.Request(1, 1)).Candidates {
		if len(c.StepScores) == 0 || c.Score == 0 {
			t.Errorf("candidate %q has the scores %v", c.Text, c.StepScores)
		}
	}
}

func TestJudgesReadNoMoreOfAConversationThanTheModel(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	m.MaxTurns = 1
	formats := reward.Formats()
	whole := slices.IndexFunc(formats, func(f reward.Format) bool { return f.Name == "sequence" })
	var read atomic.Value // texts
	read.Store([]string(nil))
	v, err := reward.New(ttstest.Run(t, &toy.Model{Outputs: 1, Logits: func(tokens []int32, row []float32) {
		row[0] = 0
		read.Store(append(read.Load().([]string), m.Spell(tokens)))
	}}), formats[whole])
	if err != nil {
		t.Fatal(err)
	}
	s := Search{Model: m, Plan: plan(t, "bon2"), Verifiers: tts.Verifiers{Default: "v", ByName: map[string]tts.Scorer{"v": v}}}
	req := ttstest.Request(1, 1)
	req.Sampling.MaxTokens = 5
	req.Prompt = tts.Prompt{Messages: []template.Message{{Role: "user", Content: "first"}, {Role: "assistant", Content: "yes"}, {Role: "user", Content: "second"}}}
	dropped := 0
	for e, err := range s.Run(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		d := ttstest.Flatten(e)
		dropped += d.Opening.Dropped
	}
	texts := read.Load().([]string)
	if dropped != 2 || len(texts) == 0 || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "first") || !strings.Contains(s, "second") }) {
		t.Errorf("%d messages were dropped, the judge read %q", dropped, texts)
	}
}
