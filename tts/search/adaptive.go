package search

import (
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// adaptive samples whole answers in rounds, as Plan.Adaptive says. What a round has brought is
// known before the next, so that what is not wanted is never computed.
type adaptive struct{}

func (a adaptive) grow(r *searchRun) (tts.StopReason, error) {
	for next := r.plan.Adaptive.First; ; {
		goesOn, reason, err := r.moreAnswers(next, r.decided)
		if err != nil || !goesOn {
			return reason, err
		}
		if next, reason = a.worth(r, r.plan.N-len(r.tree.done)); next == 0 {
			return reason, nil
		}
	}
}

// worth returns how many further answers, most at most, gain most beyond their price; 0 and
// the reason where there are enough.
func (adaptive) worth(r *searchRun, most int) (n int, reason tts.StopReason) {
	set := &r.plan.Adaptive
	rk := rank(r.tree.done, r.plan.Select)
	if rk.sel == scaling.SelectMax {
		lacks := 1 - weightOf(rk.order[0])
		return set.Worth(func(m int) float64 { return record(len(r.tree.done), m) * lacks }, most), tts.StopPrice
	}
	a, b := rk.closest()
	if rk.order[0].Finish == tts.FinishStop && set.Enough(a, b) {
		return 0, tts.StopConsensus
	}
	return set.WorthVotes(a, b, most), tts.StopPrice
}

// record returns the probability that the best of n+m answers is among the last m, when all
// orders are equally likely. It can gain no more than what the best one lacks.
func record(n, m int) float64 { return float64(m) / float64(n+m) }
