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
func (r *searchRun) sample(n, total int) error {
	first := len(r.tree.done)
	beams, err := r.fork(r.root, r.fits(n-first, 0, 0))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(r.work)
	ready := make(map[*beam]chan struct{}, len(beams))
	for _, b := range beams {
		ready[b] = make(chan struct{})
	}
	r.begin(beams, first, true)
	over := make(chan struct{})
	wait := parallel.Start([][]*beam{beams}, func(_ int, beams []*beam) error {
		defer close(over)
		judge := func(b *beam) error {
			defer close(ready[b])
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
	r.steps = 1
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
		if reason, over := r.decided(first + len(beams) + total - n); over {
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

// probes is the number of whole answers that Auto looks at first.
const probes = 4

// auto asks for a few whole answers. When they agree, or when they are of a
// kind that has no extractable answer, more would not help. Otherwise it
// searches: step by step where there is a verifier, else by further votes.
func (r *searchRun) auto() error {
	n := r.plan.N
	pair, err := r.fork(r.root, 2) // one for the probes, one for what may follow
	if err != nil {
		return err
	}
	spare := pair[len(pair)-1]
	defer spare.close()
	r.root, r.method = pair[0], scaling.SelfConsistency
	if err := r.sample(min(probes, n), n); err != nil {
		return err
	}
	rk := rank(r.tree.done, r.plan.Select)
	switch {
	case r.reason != StopComplete, r.work.Err() != nil, len(r.tree.done) >= n, len(pair) == 1:
		return nil
	case r.budget.left == 0:
		r.reason = StopBudgetTokens
		return nil
	case rk.answered*2 < rk.voters:
		r.method = scaling.BestOfN
		return nil
	case rk.agreement == 1:
		r.reason = StopConsensus
		return nil
	}
	r.root = spare
	if r.verified {
		r.method = scaling.BeamSearch
		return r.search(1)
	}
	return r.sample(n, n)
}
