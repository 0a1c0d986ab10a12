package search_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	. "github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

func TestParticleFilteringAgreesWithANaiveReference(t *testing.T) {
	m := ttstest.RunOn(t, ttstest.Thinks(t), 1024, batcher.DefaultOptions())
	for _, written := range []string{"pf1", "pf2", "pf5", "pf16", "pf16;particles.resampling=systematic", "pf8;particles.temperature=3;aggregate=min"} {
		for seed := range uint64(3) {
			s := scriptedSearch(t, m, written)
			req := ttstest.Request(seed, 1)
			p := s.Plan.WithDefaults(new(scaling.DefaultLimits()))
			extend := stepsByTheBook(t, m, p, req)
			all := make([]*tts.Candidate, p.N)
			for i := range all {
				all[i] = &tts.Candidate{}
			}
			steps := 0
			for slices.ContainsFunc(all, func(c *tts.Candidate) bool { return c.Finish == "" }) {
				steps++
				live := 0
				for i, c := range all {
					if c.Finish == "" {
						all[i] = extend(*c, live)
						live++
					}
				}
				next := make([]*tts.Candidate, len(all))
				for i, at := range Drawn(&p, seed, 0, steps, len(all), all) {
					next[i] = all[at]
				}
				all = next
			}
			got := carryOut(t, s, req)
			if got.Steps != steps || len(got.Candidates) != len(all) {
				t.Fatalf("%s: %d candidates after %d steps, want %d after %d", written, len(got.Candidates), got.Steps, len(all), steps)
			}
			want := map[string]int{}
			best := all[0]
			for _, c := range all {
				want[c.Text]++
				if c.Score > best.Score {
					best = c
				}
			}
			texts := map[string]int{}
			for _, c := range got.Candidates {
				texts[c.Text]++
			}
			if fmt.Sprint(texts) != fmt.Sprint(want) || got.text[0] != best.Text {
				t.Errorf("%s: the particles are %v and %q is chosen, want %v and %q", written, texts, got.text[0], want, best.Text)
			}
		}
	}
}

func TestAParticleDrawnTwiceVotesTwice(t *testing.T) {
	m := ttstest.RunOn(t, ttstest.Thinks(t), 1024, batcher.DefaultOptions())
	got := carryOut(t, scriptedSearch(t, m, "pf16;select=vote"), ttstest.Request(3, 1))
	votes, distinct := 0, map[int]bool{}
	for _, c := range got.Candidates {
		distinct[c.Node] = true
		if c.Answer == got.Choices[0].Answer {
			votes++
		}
	}
	if len(got.Candidates) != 16 || len(distinct) == 16 || got.Choices[0].Votes != votes {
		t.Errorf("%d of %d particles differ, and the choice has %d votes, want %d", len(distinct), len(got.Candidates), got.Choices[0].Votes, votes)
	}
}
