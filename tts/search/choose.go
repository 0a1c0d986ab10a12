package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// answerGroup is the candidates that give one answer.
type answerGroup struct {
	members []*tts.Candidate
	weight  float64 // sum of theirs
}

func (g *answerGroup) add(c *tts.Candidate) {
	g.members = append(g.members, c)
	g.weight += weightOf(c)
}

// ranking is candidates in order of preference.
type ranking struct {
	order     []*tts.Candidate
	side      answerGroup    // candidates that could have voted, and call tools as the first choice does or write text as it does
	rivals    answerGroup    // the others that could have voted
	groups    []*answerGroup // the groups of side, in order of preference
	answered  int            // candidates of side that did vote
	sel       scaling.Select // the rule that made the order
	agreement float64
}

// rank orders candidates, the best first, and fills their Votes. Candidates that were cut off, or filtered,
// come last and have no vote, unless all were.
//
// Calls of tools and texts do not answer one question. If there are both, the first vote decides between
// them by votes or weight, and the next between the calls or the texts.
func rank(cands []*tts.Candidate, sel scaling.Select) ranking {
	voters, cut := voters(cands)
	rk := ranking{sel: sel}
	for _, c := range voters {
		if c.Calls && rk.sel != scaling.SelectMax {
			rk.rivals.add(c)
		} else {
			rk.side.add(c)
		}
	}
	if rk.heavier(&rk.rivals, &rk.side) < 0 {
		rk.side, rk.rivals = rk.rivals, rk.side
	}
	others, _ := rk.vote(rk.rivals.members)
	rk.sel = sel
	rk.order, rk.groups = rk.vote(rk.side.members)
	for _, g := range rk.groups {
		rk.answered += len(g.members)
	}
	for _, c := range cut {
		c.Votes = 0 // it had some while all were cut off
	}
	slices.SortStableFunc(cut, better)
	rk.order = slices.Concat(rk.order, others, cut)
	if len(rk.order) > 0 {
		rk.agreement = float64(rk.order[0].Votes) / float64(len(voters))
	}
	return rk
}

// voters divides candidates into those that vote and those that come last: those that were cut
// off, or filtered, unless all were.
func voters(cands []*tts.Candidate) (voters, cut []*tts.Candidate) {
	for _, c := range cands {
		if c.Complete() {
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

// vote orders candidates of which all call tools or none does. Where most texts have no answer
// to vote on, the best comes first.
func (rk *ranking) vote(voters []*tts.Candidate) (order []*tts.Candidate, groups []*answerGroup) {
	groups, silent := groupAnswers(voters)
	if len(silent)*2 > len(voters) {
		rk.sel = scaling.SelectMax
	}
	slices.SortStableFunc(groups, rk.heavier)
	if rk.sel == scaling.SelectMax {
		order = slices.Clone(voters)
		slices.SortStableFunc(order, better)
		return order, groups
	}
	for _, g := range groups {
		order = append(order, g.members...)
	}
	return append(order, silent...), groups
}

// heavier orders groups by the rule.
func (rk *ranking) heavier(a, b *answerGroup) int {
	votes, weight := cmp.Compare(len(b.members), len(a.members)), cmp.Compare(b.weight, a.weight)
	if rk.sel == scaling.SelectVote {
		return cmp.Or(votes, weight)
	}
	return cmp.Or(weight, votes)
}

// silent reports whether most of the side that has won have no answer to vote on.
func (rk *ranking) silent() bool { return rk.answered*2 < len(rk.side.members) }

// contests returns the pairs of which the first has to stay ahead for the outcome to stay: the
// two sides, and the first two answers of the side that leads.
func (rk *ranking) contests() [2][2]*answerGroup {
	lead, second := &answerGroup{}, &answerGroup{}
	if len(rk.groups) > 0 {
		lead = rk.groups[0]
	}
	if len(rk.groups) > 1 {
		second = rk.groups[1]
	}
	return [2][2]*answerGroup{{&rk.side, &rk.rivals}, {lead, second}}
}

// closest returns the votes of the two that are the least settled of contests.
func (rk *ranking) closest() (a, b int) {
	least := 1.0
	for _, c := range rk.contests() {
		first, second := len(c[0].members), len(c[1].members)
		if p := scaling.Majority(first, second); p <= least {
			a, b, least = first, second, p
		}
	}
	return a, b
}

// better orders by weight; of equal ones the earlier comes first.
func better(a, b *tts.Candidate) int {
	return cmp.Or(cmp.Compare(weightOf(b), weightOf(a)), cmp.Compare(a.Index, b.Index))
}

// groupAnswers groups candidates by answer, in the order of their first members;
// silent ones have none. Within a group the best comes first.
func groupAnswers(cands []*tts.Candidate) (all []*answerGroup, silent []*tts.Candidate) {
	byKey := map[string]*answerGroup{}
	for _, c := range cands {
		if c.Key == "" {
			silent = append(silent, c)
			continue
		}
		g := byKey[c.Key]
		if g == nil {
			g = &answerGroup{}
			byKey[c.Key] = g
			all = append(all, g)
		}
		g.add(c)
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
func (r *searchRun) decided(n int) (tts.StopReason, bool) {
	sel := r.plan.Select
	left := n - len(r.tree.done)
	if r.plan.EarlyStop.Off || left == 0 || len(r.tree.done) < r.req.Choices() {
		return "", false
	}
	if sel == scaling.SelectMax {
		return tts.StopDecided, r.unbeatable() >= r.req.Choices()
	}
	rk := rank(r.tree.done, sel)
	if len(rk.groups) == 0 || rk.sel != sel || rk.order[0].Finish != tts.FinishStop {
		return "", false
	}
	ahead := math.Inf(1)
	for _, c := range rk.contests() {
		by := float64(len(c[0].members) - len(c[1].members))
		if sel == scaling.SelectWeightedVote {
			by = c[0].weight - c[1].weight // a vote weighs 1 at most
		}
		ahead = min(ahead, by)
	}
	if ahead > float64(left) && rk.answered*2 >= n {
		return tts.StopDecided, true
	}
	if c := r.plan.EarlyStop.Consensus; c > 0 && c < 1 && scaling.Majority(rk.closest()) >= c {
		return tts.StopConsensus, true
	}
	return "", false
}

// unbeatable counts the candidates that no later one can come before: those whose check has found
// nothing wrong. Of equal ones the earlier wins.
func (r *searchRun) unbeatable() (n int) {
	for _, c := range r.tree.done {
		if r.plan.Verify.Kind() != "" && c.Finish == tts.FinishStop && c.Score == 1 {
			n++
		}
	}
	return n
}

// outcome chooses among the candidates, and marks the choices in the tree.
func (r *searchRun) outcome(reason tts.StopReason) *tts.Outcome {
	rk := rank(r.tree.done, r.plan.Select)
	nodes := r.tree.nodes
	out := &tts.Outcome{
		Plan: r.plan, Method: r.does, N: r.plan.N, Steps: r.steps, Reason: reason, Select: rk.sel, Agreement: rk.agreement,
		Degraded: r.grow.degraded.Load(), Candidates: rk.order, Tree: nodes,
	}
	for _, c := range rk.order {
		nodes[c.Node].Fate = tts.FatePruned
	}
	for i := range r.req.Choices() { // a search that had to shrink may repeat its last
		c := rk.order[min(i, len(rk.order)-1)]
		out.Choices = append(out.Choices, c)
		for at := c.Node; at >= 0 && nodes[at].Fate != tts.FateChosen; at = nodes[at].Parent {
			nodes[at].Fate = tts.FateChosen
			out.Usage.Chosen += nodes[at].Tokens
		}
	}
	return out
}

// weightOf returns what a candidate's vote counts.
func weightOf(c *tts.Candidate) float64 {
	if c.Confidence > 0 {
		return float64(c.Confidence)
	}
	return float64(c.Score)
}
