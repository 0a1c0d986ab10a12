package tts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// narrate tells a part of how the search goes, to those who want to read it.
// What is told depends on what was found alone, so a seed's reasoning is the
// same every time.
func (r *searching) narrate(part *strings.Builder) error {
	if r.plan.Stream != StreamReasoning || part.Len() == 0 {
		return nil
	}
	return r.send(Delta{Reasoning: part.String(), Usage: r.news()})
}

// narrateCandidate tells of a whole answer, and shows it when it leads with an
// answer that has not been shown.
func (r *searching) narrateCandidate(c *Candidate, total int) error {
	if r.plan.Stream != StreamReasoning {
		return nil
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Candidate %d of %d", c.Index+1, total)
	switch {
	case c.Finish != FinishStop:
		out.WriteString(" was cut off")
	case c.Answer == "":
		out.WriteString(" gives no answer that could be compared")
	default:
		fmt.Fprintf(&out, " answers %s", c.Answer)
	}
	fmt.Fprintf(&out, " (score %.3f).", c.Score)
	rk := rank(r.done, r.plan.Select)
	lead := rk.order[0]
	if lead == c && (r.exhibit == nil || r.exhibit.key != c.key || c.key == "") {
		out.WriteString(" It leads:\n")
		writeSteps(&out, c)
		r.exhibit = c
	} else {
		if lead.Answer != "" {
			fmt.Fprintf(&out, " %s leads with %d of %d.", lead.Answer, lead.Votes, rk.voters)
		}
		out.WriteByte('\n')
	}
	return r.narrate(&out)
}

// writeSteps writes a candidate's lines, each with its score if the scores are
// those of lines.
func writeSteps(out *strings.Builder, c *Candidate) {
	lines := slices.DeleteFunc(strings.Split(c.Text, "\n"), func(s string) bool { return strings.TrimSpace(s) == "" })
	for i, line := range lines {
		fmt.Fprintf(out, "  %s", strings.TrimSpace(line))
		if len(c.StepScores) == len(lines) {
			fmt.Fprintf(out, "  [%.3f]", c.StepScores[i])
		}
		out.WriteByte('\n')
	}
}

// narrateStep tells of the solution step that the best of the surviving beams
// has taken, and of all its steps when it is not the one that led before.
func (r *searching) narrateStep(tried int, beams []*row) error {
	if r.plan.Stream != StreamReasoning || len(beams) == 0 {
		return nil
	}
	best := slices.MinFunc(beams, func(a, b *row) int { return cmp.Compare(b.cand.Score, a.cand.Score) }) // the first of equal ones
	var path []int
	for at := best.node; at >= 0 && at != r.narrated; at = r.tree[at].Parent {
		path = append(path, at)
	}
	if len(path) == 0 {
		return nil // it was complete before
	}
	slices.Reverse(path)
	var out strings.Builder
	fmt.Fprintf(&out, "Step %d, %d tried:", r.steps, tried)
	if r.narrated >= 0 && r.tree[path[0]].Parent != r.narrated {
		out.WriteString(" another solution leads.")
	}
	out.WriteByte('\n')
	for _, at := range path {
		n := &r.tree[at]
		fmt.Fprintf(&out, "  %s  [%.3f]\n", strings.TrimSpace(n.Text), n.Score)
	}
	r.narrated = best.node
	return r.narrate(&out)
}

// narrateChoice tells what was chosen and why.
func (r *searching) narrateChoice(o *Outcome) error {
	if r.plan.Stream != StreamReasoning {
		return nil
	}
	var out strings.Builder
	c := o.Choices[0]
	fmt.Fprintf(&out, "Chosen: candidate %d of %d", c.Index+1, len(o.Candidates))
	if c.Answer != "" {
		fmt.Fprintf(&out, ", whose answer %s is that of %d", c.Answer, c.Votes)
	}
	fmt.Fprintf(&out, " (score %.3f, %s).\n", c.Score, o.Select)
	return r.narrate(&out)
}
