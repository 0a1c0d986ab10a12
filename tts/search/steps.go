package search

import (
	"bytes"
	"slices"

	"github.com/lutra-lm/lutra/tts"
)

// step has beams generate a solution step each, which is scored, and puts it into the tree.
func (r *searchRun) step(live []*beam, first int) error {
	r.grow.begin(live, first, false)
	err := r.report.meanwhile(len(live), func() error {
		if err := r.grow.extend(r.work, live, func(*beam) error { return nil }); err != nil {
			return err
		}
		return r.grow.scoreAll(live)
	})
	if err != nil {
		return err
	}
	for _, b := range live {
		r.tree.record(b, r.steps)
	}
	return nil
}

// stopReason returns why a search ends with live beams left, of which some may have been cut
// within a solution step; StopComplete where nothing else ends it.
func (r *searchRun) stopReason(live int, cut bool) tts.StopReason {
	switch {
	case cut, live > 0 && r.grow.left == 0:
		return tts.StopBudgetTokens
	case live > 0 && r.steps == r.plan.MaxSteps:
		return tts.StopMaxSteps
	}
	return tts.StopComplete
}

// endBeams closes the unfinished beams, and makes candidates of them if none has
// finished.
func (r *searchRun) endBeams(live []*beam) {
	ended := slices.ContainsFunc(r.tree.done, func(c *tts.Candidate) bool { return c.Finish != "" })
	for _, b := range live {
		if !ended {
			r.tree.retire(b)
		}
		b.close()
	}
}

// unfinished lists the beams that have not come to their end.
func unfinished(teams [][]*beam) []*beam { return slices.DeleteFunc(slices.Concat(teams...), complete) }

func complete(b *beam) bool { return b.cand.Finish != "" }

// distinct returns beams without repeats.
func distinct(beams []*beam) []*beam {
	var out []*beam
	for _, b := range beams {
		if !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

// breaksAfter reports whether a solution step ends with b's last token. Blank lines belong to
// the step before or after them, and a call of a tool has no steps within.
func (g *grower) breaksAfter(b *beam, last int32) bool {
	within, ended := b.shape.within()
	if b.shape.calling() || len(bytes.TrimSpace(b.step)) == 0 {
		return false
	}
	if within || ended {
		return ended
	}
	piece := len(g.model.Tokenizer.Piece(last))
	stops := slices.ContainsFunc(g.plan.Step.Stop, func(stop string) bool {
		return bytes.Contains(b.step[max(0, len(b.step)-piece-len(stop)+1):], []byte(stop))
	})
	if !g.plan.Step.Lines() || b.stepTokens < longStep && !stops {
		return stops
	}
	if inFence(b.text) {
		return stops && b.stepTokens >= longStep
	}
	return stops || endsSentence(b.step)
}

// longStep is the number of tokens after which a solution step of lines may end with a sentence, and a step
// of code with any line.
const longStep = 48

// inFence tells whether the end of text is within a fenced block of code.
func inFence(text []byte) bool { return bytes.Count(text, []byte("```"))%2 == 1 }

// endsSentence tells whether text ends with a sentence. A point after a digit may belong to a number.
func endsSentence(text []byte) bool {
	n := len(text)
	return n > 1 && bytes.IndexByte([]byte(".!?"), text[n-1]) >= 0 && (text[n-2]|0x20 >= 'a' && text[n-2]|0x20 <= 'z' || text[n-2] >= 0x80)
}
