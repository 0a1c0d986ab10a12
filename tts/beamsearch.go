package tts

import (
	"cmp"
	"slices"

	"github.com/lutra-lm/lutra/internal/parallel"
)

// search carries out step-level beam search in independent groups of beams: one for
// BeamSearch, n/width for DVTS. In each group the best steps survive, and each
// of them is continued width times.
func (r *searchRun) search(groups int) error {
	keep := max(1, r.plan.N/r.plan.Width/groups)
	first := len(r.tree.done) // randomness that candidates before have had
	beams, err := r.fork(r.root, r.fits(r.plan.N, 0, 0))
	if err != nil {
		return err
	}
	teams := divideInto(beams, groups)
	for r.steps = 1; ; r.steps++ {
		live := unfinished(teams)
		if err := r.step(live, first); err != nil {
			return err
		}
		for i := range teams {
			teams[i] = r.survive(teams[i], keep)
		}
		if err := r.reporter.stepReasoning(len(live), slices.Concat(teams...)); err != nil {
			return err
		}
		cut := slices.ContainsFunc(live, func(b *beam) bool { return b.paused })
		live = unfinished(teams)
		r.reason = r.stopReason(len(live), cut)
		if len(live) == 0 || r.reason != StopComplete || r.work.Err() != nil {
			r.endBeams(live)
			return nil
		}
		if err := r.reporter.commit(live); err != nil {
			return err
		}
		if err := r.reporter.update(len(live)); err != nil {
			return err
		}
		if teams, err = r.continueEach(teams, live); err != nil {
			return err
		}
	}
}

// unfinished lists the beams that have not come to their end.
func unfinished(teams [][]*beam) []*beam { return slices.DeleteFunc(slices.Concat(teams...), complete) }

// step has beams generate a solution step each, which is scored, and puts it into the tree.
func (r *searchRun) step(live []*beam, first int) error {
	r.begin(live, first, false)
	err := r.reporter.meanwhile(len(live), func() error {
		if err := r.extend(r.work, live, func(*beam) error { return nil }); err != nil {
			return err
		}
		return r.scoreAll(live)
	})
	if err != nil {
		return err
	}
	for _, b := range live {
		r.tree.record(b, r.steps)
	}
	return nil
}

// scoreAll judges what beams have gained, but for those within whose solution step the budget has
// ended.
func (r *searchRun) scoreAll(beams []*beam) error {
	r.grant(len(beams))
	ctx, end := r.traced(r.work, "verifier", len(beams))
	defer end()
	return parallel.Each(beams, func(_ int, b *beam) error {
		if b.paused {
			return nil
		}
		return r.score(ctx, b)
	})
}

// stopReason returns why a search ends with live beams left, of which some may have been cut
// within a solution step; StopComplete where nothing else ends it.
func (r *searchRun) stopReason(live int, cut bool) StopReason {
	switch {
	case cut, live > 0 && r.budget.left == 0:
		return StopBudgetTokens
	case live > 0 && r.steps == r.plan.MaxSteps:
		return StopMaxSteps
	}
	return StopComplete
}

// survive keeps the best of a group's beams and closes the others. Beams that
// have come to their end stay candidates either way. Equal beams keep their
// order, so the outcome is the same every time.
func (r *searchRun) survive(beams []*beam, keep int) []*beam {
	for _, b := range beams {
		if complete(b) && r.tree.beams[b.cand] == nil {
			r.retire(b)
		}
	}
	slices.SortStableFunc(beams, func(a, b *beam) int { return cmp.Compare(b.cand.Score, a.cand.Score) })
	keep = min(keep, len(beams))
	for _, b := range beams[keep:] {
		r.tree.nodes[b.node].Fate = FatePruned
		b.close()
	}
	return beams[:keep]
}

// continueEach puts width copies of each live beam in its place. Complete beams
// stay, and go on competing.
func (r *searchRun) continueEach(teams [][]*beam, live []*beam) ([][]*beam, error) {
	width, shared := r.plan.Width, 0
	for _, b := range live {
		shared += len(b.cand.IDs)
	}
	for width > 1 && r.fits(len(live)*width, shared, r.tree.longest) < len(live)*width {
		width--
	}
	forks := make([][]*beam, len(live))
	err := parallel.Each(live, func(i int, b *beam) (err error) {
		forks[i], err = r.fork(b, width)
		return err
	})
	next := make([][]*beam, len(teams))
	for i, team := range teams {
		for _, b := range team {
			if complete(b) {
				next[i] = append(next[i], b)
			} else {
				next[i] = append(next[i], forks[0]...)
				forks = forks[1:]
			}
		}
	}
	return next, err
}

// endBeams closes the unfinished beams, and makes candidates of them if none has
// finished.
func (r *searchRun) endBeams(live []*beam) {
	ended := slices.ContainsFunc(r.tree.done, func(c *Candidate) bool { return c.Finish != "" })
	for _, b := range live {
		if !ended {
			r.retire(b)
		}
		b.close()
	}
}

func complete(b *beam) bool { return b.cand.Finish != "" }

// divideInto divides beams into groups of equal sizes, or nearly so.
func divideInto(beams []*beam, groups int) [][]*beam {
	groups = min(groups, len(beams))
	out := make([][]*beam, groups)
	for i := range out {
		out[i] = slices.Clone(beams[i*len(beams)/groups : (i+1)*len(beams)/groups])
	}
	return out
}
