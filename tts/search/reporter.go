package search

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// reporter streams how a search goes to its reader, and knows what of that has
// been streamed. It changes nothing in the run.
type reporter struct {
	run      *searchRun
	yield    func(tts.Event, error) bool
	partials *partials // candidates in the making; nil: they are not reported

	// What has been reported so far.
	reported        tts.Usage
	committed       string         // text of every choice
	shownNodes      int            // of the tree
	shownCandidates int            // complete ones
	shownNode       int            // of the tree, that reasoning has come to; -1: none
	shownCandidate  *tts.Candidate // the last one in reasoning
}

// progress says where the search stands; live candidates are still in the making.
func (p *reporter) progress(live int) *tts.Progress {
	tree := &p.run.tree
	now := &tts.Progress{
		Method: p.run.does, Select: p.run.plan.Select, Step: p.run.steps, Live: live, Finished: len(tree.done), Tokens: int(p.run.grow.generated.Load()),
	}
	if len(tree.done) > 0 {
		rk := rank(tree.done, p.run.plan.Select)
		now.Leader, now.Agreement = rk.order[0].Answer, rk.agreement
	}
	for _, n := range tree.nodes {
		now.Best = max(now.Best, n.Score)
	}
	return now
}

// update reports progress, and what is new since the last update.
func (p *reporter) update(live int) error {
	tree, now := &p.run.tree, p.progress(live)
	now.Added = slices.Clone(tree.nodes[p.shownNodes:])
	p.shownNodes = len(tree.nodes)
	for _, c := range tree.done[p.shownCandidates:] {
		now.Ended = append(now.Ended, *c)
	}
	p.shownCandidates = len(tree.done)
	return p.spent(now)
}

func (p *reporter) send(e tts.Event) error {
	if !p.yield(e, nil) {
		return errLeft
	}
	return nil
}

// spent sends what has happened, after what was spent until then.
func (p *reporter) spent(w tts.What) error {
	if err := p.send(tts.Event{More: true, What: p.unreported()}); err != nil {
		return err
	}
	return p.send(tts.Event{What: w})
}

// unreported returns what was spent since it was last asked. Tokens under way count as
// cancelled until their candidates are taken in.
func (p *reporter) unreported() tts.Usage {
	now := tts.Usage{Cached: p.run.prompt.seq.CachedPrompt(), Completion: p.run.tree.charged, Verifier: p.run.prompt.judge.Spent()}
	now.Cancelled = int(p.run.grow.generated.Load()) - p.run.tree.charged
	if p.run.grow.critic != nil {
		now.Critiques, _ = p.run.grow.critic.Written()
	}
	since := tts.Usage{
		Cached: now.Cached - p.reported.Cached, Completion: now.Completion - p.reported.Completion,
		Cancelled: now.Cancelled - p.reported.Cancelled, Verifier: now.Verifier - p.reported.Verifier,
		Critiques: now.Critiques - p.reported.Critiques,
	}
	p.reported = now
	return since
}

// commit delivers text that all live and all complete candidates share, and
// that therefore begins the answer whichever wins.
func (p *reporter) commit(live []*beam) error {
	if p.run.plan.Stream != scaling.StreamCommitted {
		return nil
	}
	shared, first := "", true
	narrow := func(text string) {
		if first {
			shared, first = text, false
			return
		}
		shared = shared[:commonText(shared, text)]
	}
	for _, b := range live {
		narrow(b.cand.Text)
	}
	for _, c := range p.run.tree.done {
		narrow(c.Text)
	}
	more := strings.TrimPrefix(shared, p.committed)
	if len(shared) <= len(p.committed) {
		return nil
	}
	p.committed = shared
	for i := range p.run.req.Choices() {
		if err := p.send(tts.Event{Choice: i, What: tts.Text{Text: more}}); err != nil {
			return err
		}
	}
	return nil
}

// commonText returns the length of the longest common prefix in whole runes.
func commonText(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	for i < len(a) && i > 0 && !utf8.RuneStart(a[i]) {
		i--
	}
	return i
}

// finish delivers the choices of an outcome, and completes its usage.
func (p *reporter) finish(out *tts.Outcome) error {
	usage := p.unreported()
	out.Usage.Critiques = p.reported.Critiques
	out.Usage.Discarded, out.Usage.Verifier, out.Usage.Cancelled = p.reported.Completion-out.Usage.Chosen, p.reported.Verifier, p.reported.Cancelled
	for i, c := range out.Choices {
		rest, ok := strings.CutPrefix(c.Text, p.committed)
		if !ok {
			panic(fmt.Sprintf("search: choice %d is %q, but %q was delivered", i, c.Text, p.committed))
		}
		if err := p.send(tts.Event{Choice: i, What: tts.Text{Text: rest, Tokens: c.Tokens, Last: true}}); err != nil {
			return err
		}
	}
	for _, w := range []tts.What{usage, out} {
		if err := p.send(tts.Event{More: true, What: w}); err != nil {
			return err
		}
	}
	for i, c := range out.Choices {
		b := p.run.tree.beams[c]
		t := b.seq.Timing()
		t.FirstToken = b.begun
		end := tts.End{Finish: cmp.Or(c.Finish, tts.FinishLength), Timing: tts.TimingOf(p.run.prompt.seq.Timing(), t)}
		if err := p.send(tts.Event{Choice: i, What: end}); err != nil {
			return err
		}
	}
	return nil
}
