package tts

import (
	"cmp"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/tts/scaling"
)

// answerGroup is the candidates that give one answer.
type answerGroup struct {
	members []*Candidate
	weight  float64 // sum of theirs
}

// ranking is candidates in order of preference.
type ranking struct {
	order     []*Candidate
	groups    []*answerGroup // in order of preference
	voters    int            // candidates that could have voted
	answered  int            // those that did
	sel       scaling.Select // the rule that made the order
	agreement float64
}

// rank orders candidates, the best first, and fills their Votes. Those that
// were cut off, or filtered, come last and have no vote, unless all were.
func rank(cands []*Candidate, sel scaling.Select) ranking {
	voters, cut := voters(cands)
	rk := ranking{voters: len(voters), sel: sel}
	var silent []*Candidate
	rk.groups, silent = groupAnswers(voters)
	rk.answered = len(voters) - len(silent)
	if rk.answered*2 < len(voters) && !sel.Tournament() {
		rk.sel = scaling.SelectMax
	}
	slices.SortStableFunc(rk.groups, func(a, b *answerGroup) int {
		votes, weight := cmp.Compare(len(b.members), len(a.members)), cmp.Compare(b.weight, a.weight)
		if rk.sel == scaling.SelectVote {
			return cmp.Or(votes, weight)
		}
		return cmp.Or(weight, votes)
	})
	if rk.sel == scaling.SelectMax || sel.Tournament() {
		rk.order = slices.Clone(voters)
		slices.SortStableFunc(rk.order, better)
	} else {
		for _, g := range rk.groups {
			rk.order = append(rk.order, g.members...)
		}
		rk.order = append(rk.order, silent...)
	}
	slices.SortStableFunc(cut, better)
	rk.order = append(rk.order, cut...)
	if len(rk.order) > 0 {
		rk.agreement = float64(rk.order[0].Votes) / float64(rk.voters)
	}
	return rk
}

// voters divides candidates into those that vote and those that come last: those that were cut
// off, or filtered, unless all were.
func voters(cands []*Candidate) (voters, cut []*Candidate) {
	for _, c := range cands {
		if c.Finish == FinishStop && !c.Filtered {
			voters = append(voters, c)
		} else {
			cut = append(cut, c)
		}
	}
	if len(voters) == 0 {
		return cut, nil
	}
	return voters, cut
}

// better orders by weight; of equal ones the earlier comes first.
func better(a, b *Candidate) int {
	return cmp.Or(cmp.Compare(b.weight(), a.weight()), cmp.Compare(a.Index, b.Index))
}

// groupAnswers groups candidates by answer, in the order of their first members;
// silent ones have none. Within a group the best comes first.
func groupAnswers(cands []*Candidate) (all []*answerGroup, silent []*Candidate) {
	byKey := map[string]*answerGroup{}
	for _, c := range cands {
		if c.key == "" {
			silent = append(silent, c)
			continue
		}
		g := byKey[c.key]
		if g == nil {
			g = &answerGroup{}
			byKey[c.key] = g
			all = append(all, g)
		}
		g.members = append(g.members, c)
		g.weight += c.weight()
	}
	for _, g := range all {
		for _, c := range g.members {
			c.Votes = len(g.members)
		}
		slices.SortStableFunc(g.members, better)
	}
	slices.SortStableFunc(silent, better)
	return all, silent
}

// decided reports whether the votes so far settle the outcome of n candidates.
func (r *searchRun) decided(n int) (StopReason, bool) {
	sel := r.plan.Select
	left := n - len(r.tree.done)
	if r.plan.EarlyStop.Off || left == 0 || sel.Tournament() || len(r.tree.done) < r.req.choices() {
		return "", false
	}
	if sel == scaling.SelectMax {
		return StopDecided, r.unbeatable() >= r.req.choices()
	}
	rk := rank(r.tree.done, sel)
	if len(rk.groups) == 0 || rk.sel != sel || rk.order[0].Finish != FinishStop {
		return "", false
	}
	lead, second := rk.groups[0], &answerGroup{}
	if len(rk.groups) > 1 {
		second = rk.groups[1]
	}
	a, b := len(lead.members), len(second.members)
	ahead := float64(a - b)
	if sel == scaling.SelectWeightedVote {
		ahead = lead.weight - second.weight // a vote weighs 1 at most
	}
	if ahead > float64(left) && rk.answered*2 >= n {
		return StopDecided, true
	}
	if c := r.plan.EarlyStop.Consensus; c > 0 && c < 1 && majority(a, b) >= c {
		return StopConsensus, true
	}
	return "", false
}

// unbeatable counts the candidates that no later one can come before: those whose check has found
// nothing wrong. Of equal ones the earlier wins.
func (r *searchRun) unbeatable() (n int) {
	for _, c := range r.tree.done {
		if r.plan.Verify.Kind() != "" && c.Finish == FinishStop && c.Score == 1 {
			n++
		}
	}
	return n
}

// majority returns the probability that the first of two answers is the more
// frequent one, after a and b votes and from a uniform prior: P(p > 1/2) for
// p ~ Beta(a+1, b+1), which is P(k ≤ a) for k of a+b+1 fair coins.
func majority(a, b int) float64 {
	n := a + b + 1
	p, term := 0.0, math.Exp2(-float64(n)) // of k = 0
	for k := range a + 1 {
		p += term
		term *= float64(n-k) / float64(k+1)
	}
	return p
}

// outcome chooses among the candidates, and marks the choices in the tree.
func (r *searchRun) outcome() *Outcome {
	rk := rank(r.tree.done, r.plan.Select)
	r.keepPlain(&rk)
	nodes := r.tree.nodes
	out := &Outcome{
		Plan: r.plan, Method: r.method, N: r.plan.N, Steps: r.steps, Reason: r.reason, Select: rk.sel, Agreement: rk.agreement,
		Degraded: r.degraded.Load(), Candidates: rk.order, Tree: nodes, Games: r.games, Filled: r.filled,
	}
	for _, c := range rk.order {
		nodes[c.Node].Fate = FatePruned
	}
	for i := range r.req.choices() { // a search that had to shrink may repeat its last
		c := rk.order[min(i, len(rk.order)-1)]
		out.Choices = append(out.Choices, c)
		for at := c.Node; at >= 0 && nodes[at].Fate != FateChosen; at = nodes[at].Parent {
			nodes[at].Fate = FateChosen
			out.Usage.Chosen += nodes[at].Tokens
		}
	}
	if r.filled != nil { // nobody has asked for the others
		r.tree.charged = out.Usage.Chosen
	}
	return out
}
