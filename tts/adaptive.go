package tts

import (
	"math"

	"github.com/lutra-lm/lutra/tts/scaling"
)

// adaptive samples whole answers in rounds, as Plan.Adaptive says. What a round has brought is
// known before the next, so that what is not wanted is never computed.
type adaptive struct{}

func (a adaptive) grow(r *searchRun) (StopReason, error) {
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
func (adaptive) worth(r *searchRun, most int) (n int, reason StopReason) {
	set := &r.plan.Adaptive
	rk := rank(r.tree.done, r.plan.Select)
	gain := func(m int) float64 { return record(len(r.tree.done), m) * (1 - rk.order[0].weight()) }
	if rk.sel != scaling.SelectMax {
		a, b := rk.closest()
		if rk.order[0].Finish == FinishStop && majority(a, b) >= set.Threshold {
			return 0, StopConsensus
		}
		gain = func(m int) float64 { return expectedGain(a, b, m) }
	}
	best := 0.0
	for m := 1; ; m = min(2*m, most) {
		if net := gain(m) - set.Price*set.Cost(m); net > best {
			n, best = m, net
		}
		if m >= most {
			return n, StopPrice
		}
	}
}

// record returns the probability that the best of n+m answers is among the last m, when all
// orders are equally likely. It can gain no more than what the best one lacks.
func record(n, m int) float64 { return float64(m) / float64(n+m) }

// expectedGain returns how much m further votes are expected to raise the probability of having the more frequent of two
// answers. It counts from a and b votes and a uniform prior (preposterior analysis, Raiffa & Schlaifer 1961). It is 0 if
// the votes cannot change which answer leads.
func expectedGain(a, b, m int) float64 {
	// Of the m votes, i are for the first with a Beta-binomial probability. The leading one is then right
	// with the probability of at most so many heads of n coins.
	n := a + b + m + 1
	tail, coin := 0.0, math.Exp2(-float64(n))
	p := 1.0 // of i = 0
	for j := range m {
		p *= float64(b+1+j) / float64(a+b+2+j)
	}
	sum := 0.0
	for k := range a + m + 1 {
		tail += coin
		coin *= float64(n-k) / float64(k+1)
		if i := k - a; i >= 0 {
			sum += p * max(tail, 1-tail)
			p *= float64(m-i) / float64(i+1) * float64(a+1+i) / float64(b+m-i)
		}
	}
	return max(0, sum-majority(a, b))
}
