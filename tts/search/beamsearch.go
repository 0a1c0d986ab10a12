package search

import (
	"cmp"
	"slices"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

func init() {
	methods[scaling.BeamSearch] = methodRow{start: func(r *searchRun) method { return newBeamSearch(r, 1) }}
	methods[scaling.DVTS] = methodRow{start: func(r *searchRun) method { return newBeamSearch(r, r.plan.N/r.plan.Width) }}
}

// beamSearch carries out step-level beam search (Snell et al. 2024, §5.2) in independent groups of
// beams: one, or with DVTS as many as survive a step (Beeching et al. 2024). In each group the best
// steps survive, and each of them is continued width times.
type beamSearch struct {
	run    *searchRun
	groups int
	keep   int       // beams of a group that survive a step
	teams  [][]*beam // the groups
}

func newBeamSearch(r *searchRun, groups int) *beamSearch {
	return &beamSearch{run: r, groups: groups, keep: max(1, r.plan.N/r.plan.Width/groups)}
}

func (s *beamSearch) grow(r *searchRun) (tts.StopReason, error) {
	first := len(r.tree.done) // randomness that candidates before have had
	beams, err := r.grow.fork(r.grow.root, r.grow.fits(r.plan.N, 0, 0))
	if err != nil {
		return tts.StopComplete, err
	}
	s.teams = divideInto(beams, s.groups)
	for r.steps = 1; ; r.steps++ {
		live := unfinished(s.teams)
		if err := r.step(live, first); err != nil {
			return tts.StopComplete, err
		}
		for i := range s.teams {
			s.teams[i] = s.survive(s.teams[i])
		}
		if err := r.report.stepReasoning(len(live), slices.Concat(s.teams...)); err != nil {
			return tts.StopComplete, err
		}
		cut := slices.ContainsFunc(live, func(b *beam) bool { return b.paused })
		live = unfinished(s.teams)
		if reason := r.stopReason(len(live), cut); len(live) == 0 || reason != tts.StopComplete || r.work.Err() != nil {
			r.endBeams(live)
			return reason, nil
		}
		if err := r.report.commit(live); err != nil {
			return tts.StopComplete, err
		}
		if err := r.report.update(len(live)); err != nil {
			return tts.StopComplete, err
		}
		if err := s.continueEach(live); err != nil {
			return tts.StopComplete, err
		}
	}
}

// survive keeps the best of a group's beams and closes the others. Beams that
// have come to their end stay candidates either way. Equal beams keep their
// order, so the outcome is the same every time.
func (s *beamSearch) survive(beams []*beam) []*beam {
	tree := &s.run.tree
	for _, b := range beams {
		if complete(b) && tree.beams[b.cand] == nil {
			tree.retire(b)
		}
	}
	slices.SortStableFunc(beams, func(a, b *beam) int { return cmp.Compare(b.cand.Score, a.cand.Score) })
	keep := min(s.keep, len(beams))
	for _, b := range beams[keep:] {
		tree.prune(b)
	}
	return beams[:keep]
}

// continueEach puts width copies of each live beam in its place. Complete beams
// stay, and go on competing.
func (s *beamSearch) continueEach(live []*beam) error {
	r := s.run
	width, shared := r.plan.Width, 0
	for _, b := range live {
		shared += len(b.cand.IDs)
	}
	for width > 1 && r.grow.fits(len(live)*width, shared, r.tree.longest) < len(live)*width {
		width--
	}
	forks := make([][]*beam, len(live))
	err := parallel.Each(live, func(i int, b *beam) (err error) {
		forks[i], err = r.grow.fork(b, width)
		return err
	})
	next := make([][]*beam, len(s.teams))
	for i, team := range s.teams {
		for _, b := range team {
			if complete(b) {
				next[i] = append(next[i], b)
			} else {
				next[i] = append(next[i], forks[0]...)
				forks = forks[1:]
			}
		}
	}
	s.teams = next
	return err
}

// divideInto divides beams into groups of equal sizes, or nearly so.
func divideInto(beams []*beam, groups int) [][]*beam {
	groups = min(groups, len(beams))
	out := make([][]*beam, groups)
	for i := range out {
		out[i] = slices.Clone(beams[i*len(beams)/groups : (i+1)*len(beams)/groups])
	}
	return out
}
