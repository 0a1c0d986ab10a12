package search

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

func TestAggregatesMakeOneScoreOfMany(t *testing.T) {
	scores := []float32{0.5, 0.25, 1, 0.75}
	for agg, want := range map[scaling.Aggregate]float32{
		scaling.AggregateLast: 0.75, scaling.AggregateMin: 0.25, scaling.AggregateMax: 1, scaling.AggregateMean: 0.625, scaling.AggregateProd: 0.09375,
	} {
		if got := agg.Of(scores); got != want {
			t.Errorf("%s of %v = %v, want %v", agg, scores, got, want)
		}
	}
}

// voter is a candidate with an answer, "" for none; a negative score means that it was cut off.
type voter struct {
	key   string
	score float32
}

func TestCandidatesAreRankedByTheRule(t *testing.T) {
	for name, c := range map[string]struct {
		voters               []voter
		max, vote, weighted  []int
		fallback             bool
		agreeMax, agreeVotes float64
		agreeWeighted        float64 // where it is not agreeVotes
	}{
		"one rule each": {
			voters: []voter{{"a", 0.9}, {"b", 0.6}, {"b", 0.5}, {"c", 0.2}, {"c", 0.1}, {"c", 0.3}},
			max:    []int{0, 1, 2, 5, 3, 4}, vote: []int{5, 3, 4, 1, 2, 0}, weighted: []int{1, 2, 0, 5, 3, 4},
			agreeMax: 1. / 6, agreeVotes: 0.5, agreeWeighted: 1. / 3,
		},
		"ties go to the weight, then to the first": {
			voters: []voter{{"b", 0.25}, {"a", 0.5}, {"b", 0.75}, {"a", 0.5}, {"c", 0.5}, {"c", 0.75}},
			max:    []int{2, 5, 1, 3, 4, 0}, vote: []int{5, 4, 2, 0, 1, 3}, weighted: []int{5, 4, 2, 0, 1, 3},
			agreeMax: 1. / 3, agreeVotes: 1. / 3,
		},
		"no answers": {
			voters: []voter{{"", 0.1}, {"", 0.7}, {"a", 0.2}}, fallback: true,
			max: []int{1, 2, 0}, vote: []int{1, 2, 0}, weighted: []int{1, 2, 0},
		},
		"half have answers": {
			voters: []voter{{"", 0.1}, {"", 0.7}, {"a", 0.2}, {"b", 0.1}},
			max:    []int{1, 2, 0, 3}, vote: []int{2, 3, 1, 0}, weighted: []int{2, 3, 1, 0},
			agreeVotes: 0.25,
		},
		"what was cut off has no vote": {
			voters: []voter{{"a", -0.9}, {"a", -0.8}, {"b", 0.1}},
			max:    []int{2, 0, 1}, vote: []int{2, 0, 1}, weighted: []int{2, 0, 1},
			agreeMax: 1, agreeVotes: 1,
		},
		"unless all were": {
			voters: []voter{{"a", -0.2}, {"a", -0.3}, {"b", -0.4}},
			max:    []int{2, 1, 0}, vote: []int{1, 0, 2}, weighted: []int{1, 0, 2},
			agreeMax: 1. / 3, agreeVotes: 2. / 3,
		},
	} {
		for sel, want := range map[scaling.Select][]int{scaling.SelectMax: c.max, scaling.SelectVote: c.vote, scaling.SelectWeightedVote: c.weighted} {
			var cands []*tts.Candidate
			for i, v := range c.voters {
				cand := &tts.Candidate{Index: i, Key: v.key, Score: max(v.score, -v.score), Finish: tts.FinishStop}
				if v.score < 0 {
					cand.Finish = tts.FinishLength
				}
				cands = append(cands, cand)
			}
			rk := rank(cands, sel)
			var got []int
			for _, cand := range rk.order {
				got = append(got, cand.Index)
			}
			agree := c.agreeVotes
			switch {
			case sel == scaling.SelectMax || c.fallback:
				agree = c.agreeMax
			case sel == scaling.SelectWeightedVote && c.agreeWeighted > 0:
				agree = c.agreeWeighted
			}
			if !slices.Equal(got, want) || (rk.sel != sel) != (c.fallback && sel != scaling.SelectMax) || math.Abs(rk.agreement-agree) > 1e-9 {
				t.Errorf("%s, %s: %v by %s, agreement %v; want %v, agreement %v", name, sel, got, rk.sel, rk.agreement, want, agree)
			}
		}
	}
}

func TestVotesOfCutCandidatesEndWithTheFirstCompleteOne(t *testing.T) {
	cands := []*tts.Candidate{{Key: "a", Finish: tts.FinishLength}, {Index: 1, Key: "a", Finish: tts.FinishLength}}
	if best := rank(cands, scaling.SelectVote).order[0]; best.Votes != 2 {
		t.Errorf("%d votes, and all are cut", best.Votes)
	}
	rank(append(cands, &tts.Candidate{Index: 2, Key: "a", Finish: tts.FinishStop}), scaling.SelectVote)
	if cands[0].Votes != 0 || cands[1].Votes != 0 {
		t.Errorf("%d and %d votes of candidates that are cut", cands[0].Votes, cands[1].Votes)
	}
}

// poll makes candidates of answers, of which those that begin with "f(" are calls. Weights are the
// candidates' scores; nil: all have 0.5.
func poll(answers []string, weights []float32) (all []*tts.Candidate) {
	for i, a := range answers {
		c := &tts.Candidate{Index: i, Key: a, Answer: a, Calls: strings.HasPrefix(a, "f("), Score: 0.5, Finish: tts.FinishStop}
		if weights != nil {
			c.Score = weights[i]
		}
		all = append(all, c)
	}
	return all
}

func TestAVoteIsFirstAboutCallingAtAll(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string
		weights []float32
		sel     scaling.Select
		want    string
		rule    scaling.Select
		votes   int
	}{
		"calls that differ outvote one text": {answers: []string{"f(1)", "12", "f(2)", "12", "f(1)", "f(3)", "12"}, sel: scaling.SelectVote, want: "f(1)", rule: scaling.SelectVote, votes: 2},
		"texts that differ outvote one call": {answers: []string{"f(1)", "12", "f(1)", "13", "14"}, sel: scaling.SelectVote, want: "12", rule: scaling.SelectVote, votes: 1},
		"texts without an answer count":      {answers: []string{"f(1)", "", "f(1)", "", ""}, sel: scaling.SelectVote, want: "", rule: scaling.SelectMax},
		"by weight":                          {answers: []string{"f(1)", "12", "f(1)", "13", "14"}, weights: []float32{0.9, 0.4, 0.9, 0.4, 0.4}, sel: scaling.SelectWeightedVote, want: "f(1)", rule: scaling.SelectWeightedVote, votes: 2},
		"calls alone are a vote":             {answers: []string{"f(1)", "f(2)", "f(2)"}, sel: scaling.SelectVote, want: "f(2)", rule: scaling.SelectVote, votes: 2},
		"the best is the best":               {answers: []string{"f(1)", "f(1)", "12"}, weights: []float32{0.5, 0.5, 0.9}, sel: scaling.SelectMax, want: "12", rule: scaling.SelectMax, votes: 1},
	} {
		rk := rank(poll(c.answers, c.weights), c.sel)
		if got := rk.order[0]; got.Answer != c.want || rk.sel != c.rule || got.Votes != c.votes || len(rk.order) != len(c.answers) {
			t.Errorf("%s: %q with %d votes by %s, want %q with %d by %s", name, got.Answer, got.Votes, rk.sel, c.want, c.votes, c.rule)
		}
	}
}

func TestAMixtureIsDecidedOnceNeitherVoteCanTurn(t *testing.T) {
	for _, c := range []struct {
		answers []string
		n       int
		want    bool
	}{
		{[]string{"f(1)", "f(1)", "f(1)"}, 5, true},
		{[]string{"f(1)", "f(1)", "f(1)", "12"}, 6, false}, // two texts more make it three to three
		{[]string{"f(1)", "f(1)", "f(1)", "f(1)", "12"}, 7, true},
		{[]string{"f(1)", "f(1)", "f(2)", "f(3)"}, 6, false},
		{[]string{"f(1)", "f(2)", "12", "12", "12", "12"}, 7, true},
	} {
		r := &searchRun{searchInput: &searchInput{resolvedPlan: resolvedPlan{plan: scaling.Plan{Select: scaling.SelectVote}}, req: &tts.Request{}}}
		r.tree.done = poll(c.answers, nil)
		if _, got := r.decided(c.n); got != c.want {
			t.Errorf("%v of %d is decided: %t, want %t", c.answers, c.n, got, c.want)
		}
	}
}
