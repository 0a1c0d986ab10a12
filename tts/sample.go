package tts

import (
	"context"
	"slices"
)

// sample decodes whole answers until there are n candidates, or their votes
// are decided for total ones. Candidates are taken in by their index,
// whichever is complete first: so where a vote ends depends on what they say,
// not on their speed.
func (r *searching) sample(n, total int) error {
	first := len(r.done)
	rows, err := r.fork(r.root, r.fits(n-first, 0, 0))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(r.work)
	ready := make(map[*row]chan struct{}, len(rows))
	for _, w := range rows {
		ready[w] = make(chan struct{})
	}
	r.begin(rows, first, true)
	over := make(chan struct{})
	wait := start([][]*row{rows}, func(_ int, rows []*row) error {
		defer close(over)
		judge := func(w *row) error {
			defer close(ready[w])
			return r.score(ctx, w)
		}
		err := r.extend(ctx, rows, judge)
		cut := slices.DeleteFunc(slices.Clone(rows), func(w *row) bool { return !w.paused })
		if err == nil {
			err = each(cut, func(_ int, w *row) error { return judge(w) })
		}
		if err != nil {
			cancel(err)
		}
		return err
	})
	defer func() { // every way out ends the rows first
		cancel(errDecided)
		_ = wait()
		for _, w := range rows {
			w.close()
		}
	}()
	r.steps = 1
	for i, w := range rows {
		if err := r.await(len(rows)-i, ready[w], over); err != nil { // over with an error, before it came to w
			return err
		}
		if ctx.Err() != nil && r.work.Err() == nil {
			return wait()
		}
		r.record(w, 1)
		r.retire(w)
		if err := r.narrateCandidate(w.cand, total); err != nil {
			return err
		}
		if reason, over := r.decided(first + len(rows) + total - n); over {
			r.reason = reason
			return nil
		}
		if err := r.tell(len(rows) - i - 1); err != nil {
			return err
		}
	}
	if err := wait(); err != nil {
		return err
	}
	if slices.ContainsFunc(rows, func(w *row) bool { return w.paused }) {
		r.reason = StopBudgetTokens
	}
	return nil
}
