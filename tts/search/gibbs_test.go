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

// path is a particle by the book: what it was at the end of each solution step.
type path []*tts.Candidate

func (p path) last() *tts.Candidate { return p[len(p)-1] }

// gibbsByTheBook returns the last iteration's particles, and how often a longer reference was
// drawn.
func gibbsByTheBook(t *testing.T, m *tts.Model, p scaling.Plan, req *tts.Request) (all []path, cut int) {
	t.Helper()
	extend := stepsByTheBook(t, m, p, req)
	each := p.N / p.Particles.Iterations
	var references []path
	latest := func(all []path) (list []*tts.Candidate) {
		for _, a := range all {
			list = append(list, a.last())
		}
		return list
	}
	for round := range p.Particles.Iterations {
		free := make([]path, each-len(references))
		ends := func(a path) bool { return len(a) > 0 && a.last().Finish != "" }
		for step := 1; slices.ContainsFunc(free, func(a path) bool { return !ends(a) }); step++ {
			slot := round * each
			for i, a := range free {
				if ends(a) {
					continue
				}
				from := tts.Candidate{}
				if len(a) > 0 {
					from = *a.last()
				}
				free[i] = append(slices.Clip(a), extend(from, slot))
				slot++
			}
			all = slices.Concat(free, references)
			drawn := make([]path, len(free))
			for i, at := range Drawn(&p, req.Sampling.Seed, round, step, len(free), latest(all)) {
				if drawn[i] = all[at]; len(drawn[i]) > step { // a reference
					drawn[i] = drawn[i][:step]
					cut++
				}
			}
			free = drawn
		}
		all = slices.Concat(free, references)
		references = nil
		for _, at := range Drawn(&p, req.Sampling.Seed, round, 0, p.Particles.References, latest(all)) {
			references = append(references, all[at])
		}
	}
	return all, cut
}

func TestParticleGibbsAgreesWithANaiveReference(t *testing.T) {
	m := ttstest.RunOn(t, ttstest.Thinks(t), 1024, batcher.DefaultOptions())
	cuts := 0
	for _, written := range []string{"pf8;particles.iterations=2", "pf12;particles.iterations=3;particles.references=2", "pf12;particles.iterations=4;particles.temperature=5;particles.resampling=systematic"} {
		for seed := range uint64(3) {
			s := scriptedSearch(t, m, written)
			req := ttstest.Request(seed, 1)
			p := s.Plan.WithDefaults(new(scaling.DefaultLimits()))
			all, cut := gibbsByTheBook(t, m, p, req)
			cuts += cut
			got := carryOut(t, s, req)
			want, texts := map[string]int{}, map[string]int{}
			best := all[0].last()
			for _, a := range all {
				c := a.last()
				want[fmt.Sprint(c.Text, c.StepScores)]++
				if c.Score > best.Score {
					best = c
				}
			}
			for _, c := range got.Candidates {
				texts[fmt.Sprint(c.Text, c.StepScores)]++
			}
			if fmt.Sprint(texts) != fmt.Sprint(want) || got.text[0] != best.Text {
				t.Errorf("%s, seed %d: the particles are\n%v and %q is chosen, want\n%v and %q", written, seed, texts, got.text[0], want, best.Text)
			}
		}
	}
	if cuts == 0 {
		t.Error("no reference was drawn before its end")
	}
}
