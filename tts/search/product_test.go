package search_test

import (
	"context"
	"math"
	"testing"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	. "github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// ownScorer judges by the search's own values, and reads states if reads is set.
type ownScorer struct {
	score func(c *tts.Candidate) float64
	reads bool
}

func (s ownScorer) Open(context.Context, *tts.Model, *tts.Request, []int32) (tts.Judge, error) {
	return ByOwn(s.score), nil
}

func (s ownScorer) ReadsStates() bool { return s.reads }

// length prefers long candidates, and last prefers a large last token.
var length, last = ownScorer{score: func(c *tts.Candidate) float64 { return 1 - 1/float64(1+len(c.IDs)) }},
	ownScorer{score: func(c *tts.Candidate) float64 { return float64(c.IDs[len(c.IDs)-2]%7+1) / 8 }}

func TestAProductScoresByTheGeometricMean(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	v := tts.Verifiers{ByName: map[string]tts.Scorer{"length": length, "last": last}}
	for _, plan := range []scaling.Plan{{Method: scaling.BestOfN, N: 8, Verifier: "length*last"}, {Method: scaling.BeamSearch, N: 8, Verifier: "length*last*length"}} {
		out := carryOut(t, Search{Model: m, Plan: plan, Verifiers: v}, ttstest.Request(3, 1))
		for _, c := range out.Candidates {
			if c.Finish != tts.FinishStop {
				continue
			}
			want := math.Sqrt(length.score(c) * last.score(c))
			if plan.Method == scaling.BeamSearch {
				want = math.Cbrt(length.score(c) * length.score(c) * last.score(c))
			}
			if math.Abs(float64(c.Score)-want) > 1e-6 {
				t.Errorf("%s: %q scores %v, want %v", plan.Method, c.Text, c.Score, want)
			}
		}
	}
}

func TestAProductIsOfScoresThatAreThere(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	v := tts.Verifiers{ByName: map[string]tts.Scorer{"length": length}}
	for name, code := range map[string]string{
		"length*nobody": scaling.CodeVerifierNotFound, "length*": scaling.CodeVerifierNotFound, "*": scaling.CodeVerifierNotFound,
		"length*logprob*length*logprob*length": scaling.CodeValue, "length*logprob": "",
	} {
		_, err := Search{Model: m, Plan: scaling.Plan{Method: scaling.BestOfN, Verifier: name}, Verifiers: v}.Check(t.Context(), ttstest.Request(1, 1))
		if scaling.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", name, err, code)
		}
	}
	if only := (tts.Verifiers{Default: "a*b", ByName: map[string]tts.Scorer{"a": length, "b": last}}).Only(func(name string) bool { return name == "a" }); only.Default != "a" || len(only.ByName) != 1 {
		t.Errorf("the default is %q where a alone may be used", only.Default)
	}
}

func TestASearchWithoutAVerifierGoesByLogProbabilities(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	for _, method := range []scaling.Method{scaling.BeamSearch, scaling.DVTS, scaling.ParticleFiltering} {
		plan := scaling.Plan{Method: method, N: 8}
		got := carryOut(t, Search{Model: m, Plan: plan}, ttstest.Request(5, 1))
		plan.Verifier = scaling.VerifierLogprob
		want := carryOut(t, Search{Model: m, Plan: plan}, ttstest.Request(5, 1))
		if got.Plan.Verifier != scaling.VerifierLogprob || got.Choices[0].Text != want.Choices[0].Text || got.Choices[0].Score != want.Choices[0].Score {
			t.Errorf("%s: %q by %q, want %q by %q", method, got.Choices[0].Text, got.Plan.Verifier, want.Choices[0].Text, want.Plan.Verifier)
		}
	}
}

// nowhere is a source that must not be asked.
type nowhere struct{ t *testing.T }

func (n nowhere) Share(*tts.Work) int {
	n.t.Error("candidates were offered to other machines")
	return 0
}
func (nowhere) Generate(context.Context, *tts.Work, func(int, []tts.Run)) {}
func (nowhere) Checks(string) bool                                        { return false }
func (nowhere) Checked(string, error)                                     {}

func TestWhatReadsStatesJudgesWhatThisMachineGenerates(t *testing.T) {
	m := *ttstest.Run(t, ttstest.Thinks(t))
	m.Source = nowhere{t}
	reads := length
	reads.reads = true
	v := tts.Verifiers{ByName: map[string]tts.Scorer{"reads": reads, "last": last}}
	for _, name := range []string{"reads", "last*reads"} {
		out := carryOut(t, Search{Model: &m, Plan: scaling.Plan{Method: scaling.BestOfN, N: 4, Verifier: name}, Verifiers: v}, ttstest.Request(1, 1))
		if out.Select != scaling.SelectMax {
			t.Errorf("%s: the choice is by %s", name, out.Select)
		}
	}
}
