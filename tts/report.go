package tts

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// progress says where the search stands; live candidates are still in the making.
func (r *searching) progress(live int) *Progress {
	p := &Progress{
		Method: r.method, Select: r.plan.Select, Step: r.steps, Live: live, Finished: len(r.done), Tokens: int(r.generated.Load()),
	}
	if len(r.done) > 0 {
		rk := rank(r.done, r.plan.Select)
		p.Leader, p.Agreement = rk.order[0].Answer, rk.agreement
	}
	for _, n := range r.tree {
		p.Best = max(p.Best, n.Score)
	}
	return p
}

// tell reports progress and what is new since it was last told.
func (r *searching) tell(live int) error {
	p := r.progress(live)
	p.Added = slices.Clone(r.tree[r.drawn:])
	r.drawn = len(r.tree)
	for _, c := range r.done[r.announced:] {
		p.Ended = append(p.Ended, *c)
	}
	r.announced = len(r.done)
	return r.send(Delta{Progress: p, Usage: r.news()})
}

func (r *searching) send(d Delta) error {
	if !r.yield(d, nil) {
		return errLeft
	}
	return nil
}

// news is what was spent since it was last asked. Tokens under way count as
// cancelled until their candidates are taken in.
func (r *searching) news() Usage {
	now := Usage{Cached: r.first.CachedPrompt(), Completion: r.charged, Verifier: r.judge.Spent()}
	now.Cancelled = int(r.generated.Load()) - r.charged
	since := Usage{
		Cached: now.Cached - r.told.Cached, Completion: now.Completion - r.told.Completion,
		Cancelled: now.Cancelled - r.told.Cancelled, Verifier: now.Verifier - r.told.Verifier,
	}
	r.told = now
	return since
}

// commit delivers text that all live and all complete candidates share, and
// that therefore begins the answer whichever wins.
func (r *searching) commit(live []*row) error {
	if r.plan.Stream != StreamCommitted {
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
	for _, w := range live {
		narrow(w.cand.Text)
	}
	for _, c := range r.done {
		narrow(c.Text)
	}
	more := strings.TrimPrefix(shared, r.committed)
	if len(shared) <= len(r.committed) {
		return nil
	}
	r.committed = shared
	for i := range r.req.choices() {
		if err := r.send(Delta{Choice: i, Text: more}); err != nil {
			return err
		}
	}
	return nil
}

// commonText is the length of the longest common prefix in whole runes.
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

// finish delivers the choices.
func (r *searching) finish() error {
	rk := rank(r.done, r.plan.Select)
	out := &Outcome{
		Plan: r.plan, Method: r.method, N: r.plan.N, Steps: r.steps, Reason: r.reason, Select: rk.sel, Agreement: rk.agreement,
		Degraded: r.degraded.Load(), Candidates: rk.order, Tree: r.tree,
	}
	for _, c := range rk.order {
		r.tree[c.Node].Fate = FatePruned
	}
	for i := range r.req.choices() { // a search that had to shrink may repeat its last
		c := rk.order[min(i, len(rk.order)-1)]
		out.Choices = append(out.Choices, c)
		for at := c.Node; at >= 0 && r.tree[at].Fate != FateChosen; at = r.tree[at].Parent {
			r.tree[at].Fate = FateChosen
			out.Usage.Chosen += r.tree[at].Tokens
		}
	}
	if err := r.narrateChoice(out); err != nil {
		return err
	}
	usage := r.news()
	out.Usage.Discarded, out.Usage.Verifier, out.Usage.Cancelled = r.told.Completion-out.Usage.Chosen, r.told.Verifier, r.told.Cancelled
	for i, c := range out.Choices {
		rest, ok := strings.CutPrefix(c.Text, r.committed)
		if !ok {
			panic(fmt.Sprintf("tts: choice %d is %q, but %q was delivered", i, c.Text, r.committed))
		}
		w := r.rows[c]
		t := w.seq.Timing()
		t.FirstToken = w.begun
		d := Delta{Choice: i, Text: rest, Tokens: c.Tokens, Finish: c.Finish, Timing: timing(r.first.Timing(), t)}
		if d.Finish == "" {
			d.Finish = FinishLength
		}
		if i == len(out.Choices)-1 {
			d.Usage, d.Outcome = usage, out
		}
		if err := r.send(d); err != nil {
			return err
		}
	}
	return nil
}
