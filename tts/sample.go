package tts

import (
	"context"
	"slices"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// sample decodes whole answers until there are n candidates, or their votes
// are decided for total ones. Candidates are taken in by their index,
// whichever is complete first: so where a vote ends depends on what they say,
// not on their speed.
//
// Where they are to be fewer than total, the prompt is left as the root of those to come,
// unless there is no room for it.
func (r *searchRun) sample(n, total int) error {
	first := len(r.tree.done)
	beams, err := r.forkRoot(r.fits(n-first, 0, 0), n < total)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(r.work)
	ready := make(map[*beam]chan struct{}, len(beams))
	for _, b := range beams {
		ready[b] = make(chan struct{})
	}
	r.begin(beams, first, true)
	r.grant(len(beams))
	r.steps = 1 // before beams, whose traces say it
	over := make(chan struct{})
	wait := parallel.Start([][]*beam{beams}, func(_ int, beams []*beam) error {
		defer close(over)
		judge := func(b *beam) error {
			defer close(ready[b])
			ctx, end := r.traced(ctx, "verifier", 1)
			defer end()
			return r.score(ctx, b)
		}
		err := r.extend(ctx, beams, judge)
		cut := slices.DeleteFunc(slices.Clone(beams), func(b *beam) bool { return !b.paused })
		if err == nil {
			err = parallel.Each(cut, func(_ int, b *beam) error { return judge(b) })
		}
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
		if err := r.reporter.await(len(beams)-i, ready[b], over); err != nil { // over with an error, before it came to b
			return err
		}
		if ctx.Err() != nil && r.work.Err() == nil {
			return wait()
		}
		r.tree.record(b, 1)
		r.retire(b)
		if err := r.reporter.candidateReasoning(b.cand, total); err != nil {
			return err
		}
		if reason, over := r.over(first + len(beams) + total - n); over {
			r.reason = reason
			return nil
		}
		if err := r.reporter.update(len(beams) - i - 1); err != nil {
			return err
		}
	}
	if err := wait(); err != nil {
		return err
	}
	if slices.ContainsFunc(beams, func(b *beam) bool { return b.paused }) {
		r.reason = StopBudgetTokens
	}
	return nil
}

// forkRoot returns n copies of the prompt's beam, or fewer when there is no room. With keep
// the root stays for others, if there is room for a copy beside it; else it is nil.
func (r *searchRun) forkRoot(n int, keep bool) ([]*beam, error) {
	if keep {
		n++
	}
	beams, err := r.fork(r.root, n)
	switch {
	case err != nil:
		return nil, err
	case keep && len(beams) > 1:
		return beams[1:], nil
	}
	r.root = nil
	return beams, nil
}

// more samples n further whole answers. It reports whether the search can go on after them.
func (r *searchRun) more(n int) (bool, error) {
	err := r.sample(min(len(r.tree.done)+n, r.plan.N), r.plan.N)
	switch {
	case err != nil, r.reason != StopComplete, r.work.Err() != nil, len(r.tree.done) >= r.plan.N, r.root == nil:
		return false, err
	case r.budget.left == 0:
		r.reason = StopBudgetTokens
		return false, nil
	}
	return true, nil
}

// probes is the number of whole answers that Auto looks at first.
const probes = 4

// auto asks for a few whole answers. When they agree, or when they are of a
// kind that has no extractable answer, more would not help. Otherwise it
// searches: step by step where there is a verifier, else by further votes.
func (r *searchRun) auto() error {
	n := r.plan.N
	r.method = scaling.SelfConsistency
	if err := r.sample(min(probes, n), n); err != nil {
		return err
	}
	rk := rank(r.tree.done, r.plan.Select)
	switch {
	case r.reason != StopComplete, r.work.Err() != nil, len(r.tree.done) >= n, r.root == nil:
		return nil
	case r.budget.left == 0:
		r.reason = StopBudgetTokens
		return nil
	case rk.silent():
		r.method = scaling.BestOfN
		return nil
	case rk.agreement == 1:
		r.reason = StopConsensus
		return nil
	}
	if r.verified {
		r.method = scaling.BeamSearch
		return r.search(1)
	}
	return r.sample(n, n)
}
