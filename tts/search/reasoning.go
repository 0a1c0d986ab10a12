package search

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// With StreamReasoning a search says in words how it goes. What it says depends
// on what was found alone, so a seed's reasoning is the same every time.

// reasoning sends a part of that.
func (p *reporter) reasoning(part *strings.Builder) error {
	if p.run.plan.Stream != scaling.StreamReasoning || part.Len() == 0 {
		return nil
	}
	return p.spent(tts.Reasoning(part.String()))
}

// candidateReasoning reports a whole answer, and shows it when it leads with an
// answer that has not been shown.
func (p *reporter) candidateReasoning(c *tts.Candidate, total int) error {
	if p.run.plan.Stream != scaling.StreamReasoning {
		return nil
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Candidate %d of %d", c.Index+1, total)
	switch {
	case c.Finish != tts.FinishStop:
		out.WriteString(" was cut off")
	case c.Answer == "":
		out.WriteString(" gives no answer that could be compared")
	default:
		fmt.Fprintf(&out, " answers %s", c.Answer)
	}
	fmt.Fprintf(&out, " (score %.3f).", c.Score)
	rk := rank(p.run.tree.done, p.run.plan.Select)
	lead := rk.order[0]
	if lead == c && (p.shownCandidate == nil || p.shownCandidate.Key != c.Key || c.Key == "") {
		out.WriteString(" It leads:\n")
		writeSteps(&out, c)
		p.shownCandidate = c
	} else {
		if lead.Answer != "" {
			fmt.Fprintf(&out, " %s leads with %d of %d.", lead.Answer, lead.Votes, len(rk.side.members)+len(rk.rivals.members))
		}
		out.WriteByte('\n')
	}
	return p.reasoning(&out)
}

// writeSteps writes a candidate's lines, each with its score if the scores belong to lines.
func writeSteps(out *strings.Builder, c *tts.Candidate) {
	lines := slices.DeleteFunc(strings.Split(c.Text, "\n"), func(s string) bool { return strings.TrimSpace(s) == "" })
	for i, line := range lines {
		fmt.Fprintf(out, "  %s", strings.TrimSpace(line))
		if len(c.StepScores) == len(lines) {
			fmt.Fprintf(out, "  [%.3f]", c.StepScores[i])
		}
		out.WriteByte('\n')
	}
}

// stepReasoning reports the solution step that the best of the surviving beams
// has taken, and of all its steps when it is not the one that led before.
func (p *reporter) stepReasoning(tried int, beams []*beam) error {
	if p.run.plan.Stream != scaling.StreamReasoning || len(beams) == 0 {
		return nil
	}
	best := slices.MinFunc(beams, func(a, b *beam) int { return cmp.Compare(b.cand.Score, a.cand.Score) }) // the first of equal ones
	var path []int
	for at := best.node; at >= 0 && at != p.shownNode; at = p.run.tree.nodes[at].Parent {
		path = append(path, at)
	}
	if len(path) == 0 {
		return nil // it was complete before
	}
	slices.Reverse(path)
	var out strings.Builder
	fmt.Fprintf(&out, "Step %d, %d tried:", p.run.steps, tried)
	if p.shownNode >= 0 && p.run.tree.nodes[path[0]].Parent != p.shownNode {
		out.WriteString(" another solution leads.")
	}
	out.WriteByte('\n')
	for _, at := range path {
		n := &p.run.tree.nodes[at]
		fmt.Fprintf(&out, "  %s  [%.3f]\n", strings.TrimSpace(n.Text), n.Score)
	}
	p.shownNode = best.node
	return p.reasoning(&out)
}

// choiceReasoning says what was chosen and why.
func (p *reporter) choiceReasoning(o *tts.Outcome) error {
	if p.run.plan.Stream != scaling.StreamReasoning {
		return nil
	}
	var out strings.Builder
	c := o.Choices[0]
	fmt.Fprintf(&out, "Chosen: candidate %d of %d", c.Index+1, len(o.Candidates))
	if c.Answer != "" {
		fmt.Fprintf(&out, ", whose answer %s is that of %d", c.Answer, c.Votes)
	}
	fmt.Fprintf(&out, " (score %.3f, %s).\n", c.Score, o.Select)
	return p.reasoning(&out)
}
