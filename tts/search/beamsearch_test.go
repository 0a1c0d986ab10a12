package search_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	. "github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// stepsByTheBook returns what continues a candidate by a solution step: decoded anew by a
// sequence of its own, so that nothing is forked, batched or streamed.
func stepsByTheBook(t *testing.T, m *tts.Model, p scaling.Plan, req *tts.Request) func(c tts.Candidate, slot int) *tts.Candidate {
	t.Helper()
	prompt, err := m.Encode(t.Context(), &req.Prompt)
	if err != nil {
		t.Fatal(err)
	}
	return func(c tts.Candidate, slot int) *tts.Candidate {
		seq, err := m.Engine.Open(t.Context(), slices.Concat(prompt, c.IDs))
		if err != nil {
			t.Fatal(err)
		}
		defer seq.Close()
		c.IDs, c.StepScores = slices.Clone(c.IDs), slices.Clone(c.StepScores)
		params := req.Sampling
		params.Candidate, params.Stop = slot, m.Tokenizer.EOGs()
		for tok, err := range seq.Generate(t.Context(), params) {
			if err != nil {
				t.Fatal(err)
			}
			c.IDs = append(c.IDs, tok.ID)
			if tok.Finish != sampling.Unfinished {
				c.Finish = tts.FinishStop
				break
			}
			if strings.Contains(string(m.Tokenizer.Piece(tok.ID)), "\n") {
				break
			}
		}
		c.Text = m.Decode(c.IDs)
		c.StepScores = append(c.StepScores, ttstest.Opine(c.IDs))
		c.Score = p.Aggregate.Of(c.StepScores)
		return &c
	}
}

// byTheBook returns step-level beam search by the book.
func byTheBook(t *testing.T, m *tts.Model, p scaling.Plan, groups int, req *tts.Request) []*tts.Candidate {
	t.Helper()
	extend := stepsByTheBook(t, m, p, req)
	teams := make([][]*tts.Candidate, groups)
	for i := range p.N {
		teams[i*groups/p.N] = append(teams[i*groups/p.N], &tts.Candidate{})
	}
	var done []*tts.Candidate
	for {
		slot, going := 0, false
		for i, team := range teams {
			for j, c := range team {
				if c.Finish == "" {
					team[j] = extend(*c, slot)
					slot++
				}
			}
			teams[i] = team
		}
		for i, team := range teams {
			for _, c := range team {
				if c.Finish != "" && !slices.Contains(done, c) {
					c.Index = len(done)
					done = append(done, c)
				}
			}
			slices.SortStableFunc(team, func(a, b *tts.Candidate) int { return cmp.Compare(b.Score, a.Score) })
			var next []*tts.Candidate
			for _, c := range team[:min(p.N/p.Width/groups, len(team))] {
				next = append(next, c)
				if c.Finish == "" {
					going = true
					for range p.Width - 1 {
						next = append(next, c)
					}
				}
			}
			teams[i] = next
		}
		if !going {
			return done
		}
	}
}

func TestBeamSearchAgreesWithANaiveReference(t *testing.T) {
	sweep.NoRace(t)
	m := ttstest.RunOn(t, ttstest.Thinks(t), 1024, batcher.DefaultOptions())
	for _, shape := range []struct {
		written string
		groups  int
	}{{"beam16x4", 1}, {"beam8x2", 1}, {"beam4x1", 1}, {"beam4x4", 1}, {"beam1x1", 1}, {"dvts16x4", 4}, {"dvts8x2", 4}, {"dvts4x4", 1}} {
		for _, agg := range []scaling.Aggregate{scaling.AggregateLast, scaling.AggregateMin, scaling.AggregateProd, scaling.AggregateMean, scaling.AggregateMax} {
			s := scriptedSearch(t, m, fmt.Sprintf("%s;aggregate=%s", shape.written, agg))
			req := ttstest.Request(uint64(len(agg)), 1)
			want := byTheBook(t, m, s.Plan, shape.groups, req)
			for _, sel := range []scaling.Select{scaling.SelectMax, scaling.SelectVote, scaling.SelectWeightedVote} {
				s.Plan.Select = sel
				got := carryOut(t, s, req)
				for _, c := range want {
					c.Key = c.Text[strings.LastIndexByte(c.Text, ' ')+1:]
				}
				best := Rank(want, sel)
				if len(best) != len(got.Candidates) {
					t.Fatalf("%s %s %s: %d candidates, want %d", shape.written, agg, sel, len(got.Candidates), len(best))
				}
				for i, c := range got.Candidates {
					if w := best[i]; c.Text != w.Text || c.Score != w.Score || c.Votes != w.Votes || !slices.Equal(c.StepScores, w.StepScores) {
						t.Fatalf("%s %s %s: candidate %d is %q %v, want %q %v", shape.written, agg, sel, i, c.Text, c.StepScores, w.Text, w.StepScores)
					}
				}
			}
		}
	}
}
