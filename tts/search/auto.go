package search

import (
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

func init() { methods[scaling.Auto] = methodRow{start: func(*searchRun) method { return auto{} }} }

// probes is the number of whole answers that Auto looks at first.
const probes = 4

// auto asks for a few whole answers. When they agree, or when they are of a
// kind that has no extractable answer, more would not help. Otherwise it
// searches: step by step where there is a verifier, else by further votes.
type auto struct{}

func (auto) grow(r *searchRun) (tts.StopReason, error) {
	n := r.plan.N
	r.does = scaling.SelfConsistency
	goesOn, reason, err := r.moreAnswers(min(probes, n), r.decided)
	if !goesOn {
		return reason, err
	}
	switch rk := rank(r.tree.done, r.plan.Select); {
	case rk.silent():
		r.does = scaling.BestOfN
		return tts.StopComplete, nil
	case rk.agreement == 1:
		return tts.StopConsensus, nil
	case r.verified:
		r.does = scaling.BeamSearch
		return newBeamSearch(r, 1).grow(r)
	}
	return r.answers(n, r.decided)
}
