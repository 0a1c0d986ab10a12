package search

import (
	"context"
	"slices"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

func init() {
	methods[scaling.SelfConsistency] = methodRow{start: startAnswers}
	methods[scaling.BestOfN] = methodRow{start: startAnswers, choose: bestUnlessVerified}
}

// bestUnlessVerified chooses the answer that the model finds most likely, or the answer of a vote
// that a verifier weighs.
func bestUnlessVerified(verified bool) scaling.Select {
	if verified {
		return scaling.SelectWeightedVote
	}
	return scaling.SelectMax
}

// startAnswers returns what samples whole answers: all at once, or in rounds.
func startAnswers(r *searchRun) method {
	if r.plan.Adaptive.On {
		return adaptive{}
	}
	return wholeAnswers{}
}

// wholeAnswers samples n answers at once, and ends early where the rest cannot change the outcome
// (self-consistency, best of n).
type wholeAnswers struct{}

func (wholeAnswers) grow(r *searchRun) (tts.StopReason, error) {
	return r.answers(r.plan.N, r.decided)
}

// settled tells whether the candidates complete so far settle the outcome of total ones, and why.
type settled func(total int) (tts.StopReason, bool)

// answers decodes whole answers until there are n candidates, or over says that they are enough
// for the plan's N. Candidates are taken in by their index, whichever is complete first: so where
// a vote ends depends on what they say, not on their speed.
//
// Where they are to be fewer than the plan's N, the prompt is left as the root of the others,
// unless there is no room for it.
func (r *searchRun) answers(n int, over settled) (tts.StopReason, error) {
	first, total := len(r.tree.done), r.plan.N
	beams, err := r.grow.forkRoot(r.grow.fits(n-first, 0, 0), n < total)
	if err != nil {
		return tts.StopComplete, err
	}
	ctx, cancel := context.WithCancelCause(r.work)
	ready := make(map[*beam]chan struct{}, len(beams))
	for _, b := range beams {
		ready[b] = make(chan struct{})
	}
	r.grow.begin(beams, first, true)
	r.grow.shareCritiques(len(beams))
	r.steps = 1 // before beams, whose traces say it
	ended := make(chan struct{})
	wait := parallel.Start([][]*beam{beams}, func(_ int, beams []*beam) error {
		defer close(ended)
		err := r.writeAnswers(ctx, beams, ready)
		if err != nil {
			cancel(err)
		}
		return err
	})
	defer func() { // every way out ends the beams first
		cancel(errDecided)
		_ = wait()
		for _, b := range beams {
			b.close()
		}
	}()
	for i, b := range beams {
		if err := r.report.await(len(beams)-i, ready[b], ended); err != nil { // ended with an error, before it came to b
			return tts.StopComplete, err
		}
		if ctx.Err() != nil && r.work.Err() == nil {
			return tts.StopComplete, wait()
		}
		r.tree.record(b, 1)
		r.tree.retire(b)
		if err := r.report.candidateReasoning(b.cand, total); err != nil {
			return tts.StopComplete, err
		}
		if reason, over := over(first + len(beams) + total - n); over {
			return reason, nil
		}
		if err := r.report.update(len(beams) - i - 1); err != nil {
			return tts.StopComplete, err
		}
	}
	if err := wait(); err != nil {
		return tts.StopComplete, err
	}
	if slices.ContainsFunc(beams, func(b *beam) bool { return b.paused }) {
		return tts.StopBudgetTokens, nil
	}
	return tts.StopComplete, nil
}

// writeAnswers has beams written to their ends and judged; one that the budget cuts off is judged
// as it is. It closes the channel of each beam that is ready.
func (r *searchRun) writeAnswers(ctx context.Context, beams []*beam, ready map[*beam]chan struct{}) error {
	judge := func(b *beam) error {
		defer close(ready[b])
		ctx, end := r.traced(ctx, "verifier", 1)
		defer end()
		return r.grow.score(ctx, b)
	}
	if err := r.grow.extend(ctx, beams, judge); err != nil {
		return err
	}
	cut := slices.DeleteFunc(slices.Clone(beams), func(b *beam) bool { return !b.paused })
	return parallel.Each(cut, func(_ int, b *beam) error { return judge(b) })
}

// moreAnswers samples n further whole answers. It reports whether the search can go on after them.
func (r *searchRun) moreAnswers(n int, over settled) (goesOn bool, reason tts.StopReason, err error) {
	reason, err = r.answers(min(len(r.tree.done)+n, r.plan.N), over)
	switch {
	case err != nil, reason != tts.StopComplete, r.work.Err() != nil, len(r.tree.done) >= r.plan.N, r.grow.root == nil:
		return false, reason, err
	case r.grow.left == 0:
		return false, tts.StopBudgetTokens, nil
	}
	return true, tts.StopComplete, nil
}
