package tts

import "github.com/lutra-lm/lutra/tts/scaling"

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
