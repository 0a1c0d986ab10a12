package tts

import "context"

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
	ready := make([]chan struct{}, len(rows))
	for i := range ready {
		ready[i] = make(chan struct{})
	}
	r.decode(ctx, rows, first, true)
	wait := start(rows, func(i int, w *row) (err error) {
		defer close(ready[i])
		defer func() {
			if err != nil {
				cancel(err) // of one row ends all
			}
		}()
		if err := r.extend(ctx, w); err != nil {
			return err
		}
		return r.score(ctx, w)
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
		<-ready[i]
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
	return wait()
}
