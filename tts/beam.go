package tts

import (
	"cmp"
	"slices"
)

// search is step-level beam search in independent groups of rows: one for
// BeamSearch, n/width for DVTS. In each group the best steps survive, and each
// of them is continued width times.
func (r *searching) search(groups int) error {
	keep := max(1, r.plan.N/r.plan.Width/groups)
	first := len(r.done) // randomness that candidates before have had
	rows, err := r.fork(r.root, r.fits(r.plan.N, 0, 0))
	if err != nil {
		return err
	}
	teams := share(rows, groups)
	for r.steps = 1; ; r.steps++ {
		live := slices.DeleteFunc(slices.Concat(teams...), complete)
		r.begin(live, first, false)
		err := r.meanwhile(len(live), func() error {
			if err := r.extend(r.work, live, func(*row) error { return nil }); err != nil {
				return err
			}
			return each(live, func(_ int, w *row) error {
				if w.paused { // the budget has ended within its solution step
					return nil
				}
				return r.score(r.work, w)
			})
		})
		if err != nil {
			return err
		}
		cut := false
		for _, w := range live {
			r.record(w, r.steps)
			cut = cut || w.paused
		}
		for i := range teams {
			teams[i] = r.compete(teams[i], keep)
		}
		if err := r.narrateStep(len(live), slices.Concat(teams...)); err != nil {
			return err
		}
		live = slices.DeleteFunc(slices.Concat(teams...), complete)
		switch {
		case cut, len(live) > 0 && r.left == 0:
			r.reason = StopBudgetTokens
		case len(live) > 0 && r.steps == r.plan.MaxSteps:
			r.reason = StopMaxSteps
		}
		if len(live) == 0 || r.reason != StopComplete || r.work.Err() != nil {
			r.settleBeams(live)
			return nil
		}
		if err := r.commit(live); err != nil {
			return err
		}
		if err := r.tell(len(live)); err != nil {
			return err
		}
		if teams, err = r.continueEach(teams, live); err != nil {
			return err
		}
	}
}

// compete keeps the best of a group's rows and closes the others. Rows that
// have come to their end stay candidates either way. Equal rows keep their
// order, so the outcome is the same every time.
func (r *searching) compete(rows []*row, keep int) []*row {
	for _, w := range rows {
		if complete(w) && r.rows[w.cand] == nil {
			r.retire(w)
		}
	}
	slices.SortStableFunc(rows, func(a, b *row) int { return cmp.Compare(b.cand.Score, a.cand.Score) })
	keep = min(keep, len(rows))
	for _, w := range rows[keep:] {
		r.tree[w.node].Fate = FatePruned
		w.close()
	}
	return rows[:keep]
}

// continueEach puts width copies of each live row in its place. Complete rows
// stay, and go on competing.
func (r *searching) continueEach(teams [][]*row, live []*row) ([][]*row, error) {
	width, shared := r.plan.Width, 0
	for _, w := range live {
		shared += len(w.cand.IDs)
	}
	for width > 1 && r.fits(len(live)*width, shared, r.long) < len(live)*width {
		width--
	}
	forks := make([][]*row, len(live))
	err := each(live, func(i int, w *row) (err error) {
		forks[i], err = r.fork(w, width)
		return err
	})
	next := make([][]*row, len(teams))
	for i, team := range teams {
		for _, w := range team {
			if complete(w) {
				next[i] = append(next[i], w)
			} else {
				next[i] = append(next[i], forks[0]...)
				forks = forks[1:]
			}
		}
	}
	return next, err
}

// settleBeams makes candidates of the beams that have come to no end, when
// nothing has.
func (r *searching) settleBeams(live []*row) {
	ended := slices.ContainsFunc(r.done, func(c *Candidate) bool { return c.Finish != "" })
	for _, w := range live {
		if !ended {
			r.retire(w)
		}
		w.close()
	}
}

func complete(w *row) bool { return w.cand.Finish != "" }

// share divides rows into groups of equal sizes, or nearly so.
func share(rows []*row, groups int) [][]*row {
	groups = min(groups, len(rows))
	out := make([][]*row, groups)
	for i := range out {
		out[i] = slices.Clone(rows[i*len(rows)/groups : (i+1)*len(rows)/groups])
	}
	return out
}
