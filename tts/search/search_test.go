package search_test

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/reward"
	"github.com/lutra-lm/lutra/tts/scaling"
	. "github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// scripted scores by opine, one score a call, and counts its judges.
type scripted struct{ open atomic.Int64 }

type scriptedJudge struct {
	s      *scripted
	closed sync.Once
	scores int64 // not charged yet
	spent  *atomic.Int64
}

func (s *scripted) Open(context.Context, *tts.Model, *tts.Request, []int32) (tts.Judge, error) {
	s.open.Add(1)
	return &scriptedJudge{s: s, spent: new(atomic.Int64)}, nil
}

func (j *scriptedJudge) Score(_ context.Context, c *tts.Candidate) error {
	j.scores++
	c.StepScores = append(c.StepScores, ttstest.Opine(c.IDs))
	return nil
}

func (j *scriptedJudge) Fork(_ context.Context, n int) ([]tts.Judge, error) {
	judges := make([]tts.Judge, n)
	for i := range judges {
		j.s.open.Add(1)
		judges[i] = &scriptedJudge{s: j.s, spent: j.spent}
	}
	return judges, nil
}

func (j *scriptedJudge) Charge()    { j.spent.Add(j.scores); j.scores = 0 }
func (j *scriptedJudge) Spent() int { return int(j.spent.Load()) }
func (j *scriptedJudge) Close()     { j.closed.Do(func() { j.s.open.Add(-1) }) }

// plan parses a written plan.
func plan(t *testing.T, s string) scaling.Plan {
	t.Helper()
	p, err := scaling.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// scriptedSearch carries out a written plan with a scripted verifier.
func scriptedSearch(t *testing.T, m *tts.Model, written string) Search {
	t.Helper()
	return Search{Model: m, Plan: plan(t, written), Verifiers: tts.Verifiers{Default: "scripted", ByName: map[string]tts.Scorer{"scripted": &scripted{}}}}
}

// found holds a search's results.
type found struct {
	text     []string
	usage    tts.Usage
	progress int
	drawn    []tts.Node // as the reports had it
	*tts.Outcome
}

// carryOut runs a search to its end and checks what holds of every one.
func carryOut(t *testing.T, s tts.Strategy, req *tts.Request) found {
	t.Helper()
	f := found{text: make([]string, max(req.N, 1))}
	ended := make([]bool, max(req.N, 1))
	for e, err := range s.Run(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		d := ttstest.Flatten(e)
		if f.Outcome != nil && d.Finish == "" {
			t.Errorf("after the outcome comes %+v", d)
		}
		f.text[d.Choice] += d.Text
		ended[d.Choice] = ended[d.Choice] || d.Finish != ""
		f.usage.Add(d.Usage)
		f.Outcome = cmp.Or(d.Outcome, f.Outcome)
		if d.Progress != nil {
			f.progress++
			f.drawn = append(f.drawn, d.Progress.Added...)
		}
	}
	if f.Outcome == nil || slices.Contains(ended, false) {
		t.Fatalf("the search ended without an outcome or a finish: %+v", f)
	}
	if f.progress > 0 && len(f.drawn) == 0 {
		t.Errorf("%d reports held nothing of the tree", f.progress)
	}
	for i, n := range f.drawn {
		if n.Fate = f.Tree[i].Fate; n != f.Tree[i] {
			t.Errorf("node %d was reported as %+v, want %+v", i, n, f.Tree[i])
		}
	}
	for i, c := range f.Choices {
		if c.Text != f.text[i] {
			t.Errorf("choice %d was streamed as %q, want %q", i, f.text[i], c.Text)
		}
		if c != f.Candidates[min(i, len(f.Candidates)-1)] {
			t.Errorf("choice %d is not candidate %d in order of preference", i, i)
		}
		path := ""
		for at := c.Node; at >= 0; at = f.Tree[at].Parent {
			path = f.Tree[at].Text + path
			if f.Tree[at].Fate != tts.FateChosen {
				t.Errorf("node %d on the way to choice %d was %s", at, i, f.Tree[at].Fate)
			}
		}
		if path != c.Text {
			t.Errorf("the tree's path to choice %d is %q, want %q", i, path, c.Text)
		}
	}
	if u := f.Outcome.Usage; u.Chosen+u.Discarded != f.usage.Completion || u.Verifier != f.usage.Verifier || u.Discarded < 0 {
		t.Errorf("usage %+v does not add up to %+v", u, f.usage)
	}
	if len(f.Choices) == 1 && f.Outcome.Usage.Chosen != len(f.Choices[0].IDs) {
		t.Errorf("%d tokens chosen, want the choice's %d", f.Outcome.Usage.Chosen, len(f.Choices[0].IDs))
	}
	if v, ok := s.(Search).Verifiers.ByName["scripted"].(*scripted); ok {
		if n := v.open.Load(); n != 0 {
			t.Errorf("%d judges left open", n)
		}
	}
	return f
}

func TestAllMethodsOfOneCandidateAreThePlainStrategy(t *testing.T) {
	m := ttstest.Run(t, &toy.Model{})
	for _, temperature := range []float32{0, 0.8} {
		req := ttstest.Request(5, 1)
		req.Sampling.Temperature, req.Sampling.MaxTokens = temperature, 120
		want := ttstest.Collect(t, 1, tts.Single{Model: m}.Run(t.Context(), req))
		for _, written := range []string{"bon1", "sc1", "beam1x1", "dvts1x1", "beam1x1;step.max_tokens=7", "auto;n=1", "asc1", "abon1", "deepconf1", "pf1"} {
			got := carryOut(t, scriptedSearch(t, m, written), req)
			if got.text[0] != want.Text[0] || got.usage.Completion != want.Usage.Completion || got.Choices[0].Finish != want.Finish[0] {
				t.Errorf("temperature %v: %s gives %q, want %q", temperature, written, got.text[0], want.Text[0])
			}
		}
	}
}

func TestASeedGivesTheSameTreeIdleOrUnderLoad(t *testing.T) {
	m := ttstest.RunOn(t, ttstest.Thinks(t), 160, batcher.DefaultOptions()) // the load must preempt and evict
	for _, written := range []string{"beam16x4", "dvts8x2", "sc16", "bon8", "auto;n=16", "asc16", "deepconf16", "pf16", "pf16;particles.iterations=2"} {
		s := scriptedSearch(t, m, written)
		idle := carryOut(t, s, ttstest.Request(3, 2))
		ctx, cancel := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for i := range 4 {
			load.Go(func() {
				for ctx.Err() == nil {
					for range scriptedSearch(t, m, "beam16x4").Run(ctx, ttstest.Request(uint64(i), 1)) {
					}
				}
			})
		}
		for range 3 {
			if busy := carryOut(t, s, ttstest.Request(3, 2)); !reflect.DeepEqual(idle.Tree, busy.Tree) || !slices.Equal(idle.text, busy.text) {
				t.Errorf("%s under load: %q, want %q", written, busy.text, idle.text)
			}
		}
		cancel()
		load.Wait()
	}
}

func TestASeedCostsTheSameIdleOrUnderLoad(t *testing.T) {
	m := ttstest.RunOn(t, ttstest.Thinks(t), 160, batcher.DefaultOptions()) // the load must preempt and evict
	prm := ttstest.RunOn(t, &toy.Model{Outputs: 1}, 160, batcher.DefaultOptions())
	v, err := reward.New(prm, reward.Formats()[0])
	if err != nil {
		t.Fatal(err)
	}
	verifiers := tts.Verifiers{Default: "prm", ByName: map[string]tts.Scorer{"prm": v}}
	for _, written := range []string{
		"sc16", "sc16;select=weighted_vote", "sc16;early_stop.consensus=0.6", "bon8", "beam16x4", "dvts8x2", "auto;n=16",
		"sc16;budget.tokens=70", "bon8;budget.tokens=33", "beam16x4;budget.tokens=50", "dvts8x2;budget.tokens=51", "auto;n=16;budget.tokens=90", "beam8x2;verifier=logprob",
		"asc16", "abon16;select=max", "deepconf16;deepconf.window=2", "pf16", "pf8;particles.resampling=systematic;budget.tokens=50", "pf12;particles.iterations=2;budget.tokens=90",
	} {
		s := Search{Model: m, Plan: plan(t, written), Verifiers: verifiers}
		idle := carryOut(t, s, ttstest.Request(3, 2))
		cost := func(f found) tts.Usage {
			return tts.Usage{Prompt: f.usage.Prompt, Completion: f.usage.Completion, Verifier: f.usage.Verifier}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for i := range 6 {
			load.Go(func() {
				for ctx.Err() == nil {
					for range (Search{Model: m, Plan: plan(t, "sc16"), Verifiers: verifiers}).Run(ctx, ttstest.Request(uint64(i), 1)) {
					}
				}
			})
		}
		for range sweep.Of(t, 2, 8) {
			busy := carryOut(t, s, ttstest.Request(3, 2))
			if cost(busy) != cost(idle) || busy.Reason != idle.Reason || !reflect.DeepEqual(busy.Tree, idle.Tree) {
				t.Errorf("%s costs %+v under load (%s), %+v idle (%s)", written, busy.usage, busy.Reason, idle.usage, idle.Reason)
			}
		}
		cancel()
		load.Wait()
	}
}

func TestSharedTextIsDeliveredWhileASearchRuns(t *testing.T) {
	m := ttstest.Run(t, ttstest.Says(t, ttstest.Words(t).Encode(nil, ttstest.Asked, tokenizer.Options{}), "one\ntwo\nthree"))
	for mode, early := range map[scaling.StreamMode]bool{scaling.StreamCommitted: true, scaling.StreamFinal: false} {
		s := scriptedSearch(t, m, "beam4x2")
		s.Plan.Stream = mode
		before, gained, steps := "", "", 0
		for e, err := range s.Run(t.Context(), ttstest.Request(1, 1)) {
			if err != nil {
				t.Fatal(err)
			}
			d := ttstest.Flatten(e)
			gained += d.Text
			if d.Progress != nil {
				before = gained
				steps++
			}
		}
		if (before == "one\ntwo\n") != early || !early && before != "" || steps != 2 {
			t.Errorf("%s: %q was delivered before the end in %d reports", mode, before, steps)
		}
	}
}

func TestVotesEndWhenTheyAreDecided(t *testing.T) {
	m := ttstest.Run(t, ttstest.Says(t, ttstest.Words(t).Encode(nil, ttstest.Asked, tokenizer.Options{}), "Answer: 7"))
	for _, c := range []struct {
		written string
		votes   int
		reason  tts.StopReason
	}{
		{"sc16", 9, tts.StopDecided},
		{"sc16;early_stop.consensus=0.95", 4, tts.StopConsensus},
		{"sc16;early_stop.consensus=0.5", 1, tts.StopConsensus},
		{"sc16;early_stop.consensus=1", 9, tts.StopDecided},
		{"sc16;early_stop=false", 16, tts.StopComplete},
		{"sc16;answer.extract=regex:x", 16, tts.StopComplete}, // nothing to vote on
		{"bon8", 8, tts.StopComplete},
		{"auto;n=16", 4, tts.StopConsensus},
		{"asc16", 3, tts.StopPrice},
		{"asc16;adaptive.threshold=0.9", 3, tts.StopConsensus},
		{"asc16;adaptive.first=5", 5, tts.StopConsensus},
		{"asc16;adaptive.price=0.000001;adaptive.threshold=1", 9, tts.StopDecided},
		{"abon16", 3, tts.StopPrice},
		{"deepconf16", 3, tts.StopConsensus},
		{"deepconf16;early_stop=false", 16, tts.StopComplete},
	} {
		got := carryOut(t, Search{Model: m, Plan: plan(t, c.written)}, ttstest.Request(1, 1))
		if len(got.Candidates) != c.votes || got.Reason != c.reason || got.Agreement != 1 && !strings.Contains(c.written, "regex") {
			t.Errorf("%s: %d candidates, %s, agreement %v; want %d, %s", c.written, len(got.Candidates), got.Reason, got.Agreement, c.votes, c.reason)
		}
	}
}

func TestNoneIsThePlainStrategy(t *testing.T) {
	m := ttstest.Run(t, &toy.Model{})
	req := ttstest.Request(5, 2)
	req.Sampling.Temperature, req.Sampling.MaxTokens = 0, 20
	want := ttstest.Collect(t, 2, tts.Single{Model: m}.Run(t.Context(), req))
	s := Search{Model: m, Plan: scaling.Plan{Method: scaling.None, N: 1}}
	if p, err := s.Check(t.Context(), req); err != nil || p.Plan.String() != "none" {
		t.Errorf("Check() = %v, %v", p, err)
	}
	if got := ttstest.Collect(t, 2, s.Run(t.Context(), req)); !slices.Equal(got.Text, want.Text) || got.Usage.Completion != want.Usage.Completion {
		t.Errorf("none gives %q, want %q", got.Text, want.Text)
	}
}

func TestAutoSearchesOnlyWhenCandidatesDisagree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ttstest.Run(t, ttstest.Thinks(t))
		s := scriptedSearch(t, m, "auto;n=16")
		if got := carryOut(t, s, ttstest.Request(3, 1)); got.Method != scaling.BeamSearch || len(got.Candidates) <= Probes {
			t.Errorf("with a verifier: %s of %d candidates, want a beam search", got.Method, len(got.Candidates))
		}
		s.Verifiers = tts.Verifiers{}
		if got := carryOut(t, s, ttstest.Request(3, 1)); got.Method != scaling.SelfConsistency || len(got.Candidates) <= Probes {
			t.Errorf("without: %s of %d candidates, want more votes", got.Method, len(got.Candidates))
		}
		s.Plan.Answer.Extract = "regex:nothing like it"
		if got := carryOut(t, s, ttstest.Request(3, 1)); got.Method != scaling.BestOfN || len(got.Candidates) != Probes {
			t.Errorf("without answers: %s of %d candidates, want the best of the first", got.Method, len(got.Candidates))
		}
		s.Plan.N = scaling.AutoN
		synctest.Wait() // until the engine has ended the candidates before
		if got := carryOut(t, s, ttstest.Request(3, 1)); got.N != batcher.Tile {
			t.Errorf("an idle engine has room for %d candidates, want %d", got.N, batcher.Tile)
		}
	})
}

func TestThirtyTwoSearchesAtOnceAllEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ttstest.RunOn(t, ttstest.Thinks(t), 128, batcher.DefaultOptions())
		v, err := reward.New(ttstest.RunOn(t, &toy.Model{Outputs: 1}, 64, batcher.DefaultOptions()), reward.Formats()[0])
		if err != nil {
			t.Fatal(err)
		}
		s := Search{Model: m, Plan: plan(t, "beam16x4"), Verifiers: tts.Verifiers{Default: "prm", ByName: map[string]tts.Scorer{"prm": v}}}
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() { carryOut(t, s, ttstest.Request(uint64(i), 1)) })
		}
		all.Wait()
	})
}

func TestSearchesComputeNothingTwice(t *testing.T) {
	model, verifier := ttstest.Thinks(t), &toy.Model{}
	m := ttstest.RunOn(t, model, 1024, batcher.DefaultOptions())
	s, _ := judged(t, m, "beam16x4", verifier, 1024)
	got := carryOut(t, s, ttstest.Request(1, 1))
	forks := 16 * got.Steps // those that go on generating compute their parent's last token
	if n := got.usage.Prompt + got.usage.Completion + forks; model.Computed() > n {
		t.Errorf("the generator computed %d tokens, want at most %d", model.Computed(), n)
	}
	first := 16 // steps at most, which compute the prompt's last token
	if n := got.usage.Verifier + first; verifier.Computed() > n {
		t.Errorf("the verifier computed %d tokens, want at most %d", verifier.Computed(), n)
	}
}
