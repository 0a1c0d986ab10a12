package report

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/profile"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Search reports the searches for an answer, one a prompt. A nil one reports nothing: the answer looks as if there
// had been no search.
type Search struct {
	include    scaling.Include
	candidates bool // report each candidate once it is complete
	n          int  // choices of a prompt
	latest     atomic.Pointer[searchProgress]
	outcomes   []*tts.Outcome  // of each prompt; nil until its search has ended
	sampling   sampling.Config // of the candidates
	start      time.Time       // of the request
	chosen     *chosen         // nil: nothing was
}

// chosen describes the choice for a quality or a deadline.
type chosen struct {
	*profile.Choice
	TookMS float64 `json:"took_ms"` // from the request's arrival
}

// NewSearch reports a search by a plan, which may have been chosen, of candidates that are
// sampled as sampled says, for a request that came at start.
func NewSearch(p *scaling.Plan, sampled *sampling.Params, choice *profile.Choice, start time.Time) *Search {
	r := &Search{include: p.Include, candidates: p.Stream == scaling.StreamCandidates, sampling: sampling.ConfigOf(sampled), start: start}
	r.Expect(1, 1)
	if choice != nil {
		r.chosen = &chosen{Choice: choice}
	}
	return r
}

// Expect prepares the report for prompts prompts of n choices each; a new one is for one of each.
// The report may be nil.
func (r *Search) Expect(prompts, n int) {
	if r != nil {
		r.n, r.outcomes = n, make([]*tts.Outcome, prompts)
	}
}

// searchProgress is the state of a running search.
type searchProgress struct {
	Prompt     *int           `json:"prompt,omitempty"` // whose search it is, where a request has several
	Method     scaling.Method `json:"method"`
	Select     scaling.Select `json:"select"`
	Step       int            `json:"step"`
	Live       int            `json:"live"`     // candidates under way
	Finished   int            `json:"finished"` // candidates complete
	Tokens     int            `json:"tokens"`   // generated so far
	Best       float64        `json:"best"`
	Leader     *string        `json:"leader"` // the leading answer
	Agreement  float64        `json:"agreement"`
	Candidates []*Candidate   `json:"candidates,omitempty"` // complete since the last progress
	Added      []node         `json:"added,omitempty"`      // to the tree since then; fates may yet change
	Partial    []partial      `json:"partial,omitempty"`    // what candidates under way have gained since then
}

// partial is a candidate under way.
type partial struct {
	Index        int      `json:"index"`
	Parent       int      `json:"parent"`  // node of the tree that it continues; -1: the prompt
	Text         string   `json:"text"`    // gained
	Tokens       int      `json:"tokens"`  // generated so far
	Logprob      float64  `json:"logprob"` // mean over them
	FinishReason *string  `json:"finish_reason,omitempty"`
	Answer       *string  `json:"answer,omitempty"`
	Score        *float64 `json:"score,omitempty"` // null: not scored yet
}

// searchOutcome is the result of a search.
type searchOutcome struct {
	Method     scaling.Method  `json:"method"`
	N          int             `json:"n"`
	Width      int             `json:"width,omitempty"`
	Steps      int             `json:"steps"`
	StopReason tts.StopReason  `json:"stop_reason"`
	Select     scaling.Select  `json:"select"`
	Sampling   sampling.Config `json:"sampling"` // of the candidates, where it is not plain
	Agreement  float64         `json:"agreement"`
	Degraded   bool            `json:"degraded,omitempty"`
	Finished   *int            `json:"finished,omitempty"` // candidates that were complete at the deadline that ended the search
	Chosen     *chosen         `json:"chosen,omitempty"`
	scaling.MethodSettings
	Candidates []*Candidate `json:"candidates,omitempty"`
	Tree       []node       `json:"tree,omitempty"`
}

// node is a solution step in the tree of all that the search tried.
type node struct {
	Parent int `json:"parent"` // index in the list; -1: the prompt
	Depth  int `json:"step"`
	Step
	Fate tts.Fate `json:"fate"`
}

// Take takes in what an event says of the search. It tells whether that deserves a
// chunk of its own.
func (r *Search) Take(e tts.Event) bool {
	if r == nil {
		return false
	}
	switch w := e.What.(type) {
	case *tts.Outcome:
		r.outcomes[e.Choice/r.n] = w
		if r.chosen != nil {
			r.chosen.TookMS = jsonwrite.Rounded(float64(time.Since(r.start)) / float64(time.Millisecond))
		}
	case *tts.Progress:
		r.at(e.Choice/r.n, w)
		return true
	}
	return false
}

// at takes in where the search of a prompt stands.
func (r *Search) at(prompt int, p *tts.Progress) {
	now := &searchProgress{Method: p.Method, Select: p.Select, Step: p.Step, Live: p.Live, Finished: p.Finished, Tokens: p.Tokens,
		Best: jsonwrite.Number(p.Best), Leader: jsonwrite.Optional(p.Leader), Agreement: p.Agreement}
	if len(r.outcomes) > 1 {
		now.Prompt = &prompt
	}
	if r.include.Tree {
		now.Added = nodes(p.Added)
	}
	if r.candidates {
		for i := range p.Ended {
			now.Candidates = append(now.Candidates, withText(newCandidate(&p.Ended[i]), &p.Ended[i]))
		}
	}
	for i := range p.Partial {
		now.Partial = append(now.Partial, newPartial(&p.Partial[i]))
	}
	r.latest.Store(now)
}

// Progress returns the latest, for chunks without anything else. It may be called during
// Take.
func (r *Search) Progress() any {
	if r == nil {
		return nil
	}
	now := r.latest.Load()
	if now == nil {
		return nil
	}
	if now.Candidates != nil || now.Added != nil || now.Partial != nil { // are reported once
		later := *now
		later.Candidates, later.Added, later.Partial = nil, nil, nil
		r.latest.CompareAndSwap(now, &later)
	}
	return now
}

// Choice reports a choice's candidate.
func (r *Search) Choice(i int) *Candidate {
	if r == nil || r.outcomes[i/r.n] == nil {
		return nil
	}
	o := r.outcomes[i/r.n]
	c := o.Choices[i%r.n]
	return r.described(newCandidate(c), c, o)
}

// described adds to a candidate of a search what was asked for.
func (r *Search) described(out *Candidate, c *tts.Candidate, o *tts.Outcome) *Candidate {
	if r.include.Steps {
		out.Steps = stepsTo(o.Tree, c.Node)
	}
	if r.include.Critiques {
		out.Critiques = critiques(c.Critiques)
	}
	return out
}

// Summary reports the search as a whole, or all of them in a list.
func (r *Search) Summary() any {
	if r == nil {
		return nil
	}
	if len(r.outcomes) == 1 {
		return r.Of(0)
	}
	all := make([]any, len(r.outcomes))
	for p := range all {
		all[p] = r.Of(p * r.n)
	}
	return all
}

// Of reports the search of a prompt with its first choice, i; nil for other
// choices.
func (r *Search) Of(i int) any {
	if r == nil || i%r.n != 0 || r.outcomes[i/r.n] == nil {
		return nil
	}
	o := r.outcomes[i/r.n]
	out := &searchOutcome{Method: o.Method, N: o.N, Steps: o.Steps, StopReason: o.Reason, Select: o.Select, Sampling: r.sampling, Agreement: o.Agreement, Degraded: o.Degraded,
		MethodSettings: o.Plan.MethodSettings(), Chosen: r.chosen}
	if o.Reason == tts.StopDeadline {
		out.Finished = new(int)
		for _, c := range o.Candidates {
			if c.Finish != "" {
				*out.Finished++
			}
		}
	}
	if o.Method.Beams() {
		out.Width = o.Plan.Width
	}
	if r.include.Tree {
		out.Tree = nodes(o.Tree)
	}
	if !r.include.Candidates {
		return out
	}
	for _, c := range o.Candidates {
		out.Candidates = append(out.Candidates, r.described(withText(newCandidate(c), c), c, o))
	}
	return out
}

// Spent divides the tokens of all searches; nil before they have ended.
func (r *Search) Spent() *Usage {
	if r == nil {
		return nil
	}
	var sum Usage
	for _, o := range r.outcomes {
		if o == nil {
			return nil
		}
		sum.Chosen += o.Usage.Chosen
		sum.Discarded += o.Usage.Discarded
		sum.Verifier += o.Usage.Verifier
		sum.Critiques += o.Usage.Critiques
		sum.Cancelled += o.Usage.Cancelled
	}
	return &sum
}

// Update takes in what an event says of the search, for an API whose answers have one choice.
// It returns where the search stands, if that is news, for a place that adds nothing.
func (r *Search) Update(e tts.Event) any {
	if !r.Take(e) {
		return nil
	}
	return r.Progress()
}

// Answer reports the search in one object, with what it chose and its tokens, for an API whose
// answers have one choice; nil where there is nothing to report.
func (r *Search) Answer() any {
	out, ok := r.Of(0).(*searchOutcome)
	if !ok {
		return nil
	}
	return struct {
		*searchOutcome
		Choice *Candidate `json:"choice"`
		Usage  *Usage     `json:"usage"`
	}{out, r.Choice(0), r.Spent()}
}

func newCandidate(c *tts.Candidate) *Candidate {
	out := &Candidate{Candidate: c.Index, Tokens: len(c.IDs), Score: jsonwrite.Number(c.Score), Logprob: jsonwrite.Rounded(jsonwrite.Finite(c.Logprob)), Answer: jsonwrite.Optional(c.Answer), Votes: c.Votes, Verdict: c.Verdict,
		StepScores: make([]float64, len(c.StepScores)), Confidence: jsonwrite.Number(c.Confidence), Filtered: c.Filtered}
	for i, s := range c.StepScores {
		out.StepScores[i] = jsonwrite.Number(s)
	}
	return out
}

// critiques lists what was written of a candidate.
func critiques(list []tts.Critique) []Critique {
	var out []Critique
	for _, c := range list {
		out = append(out, Critique{Step: c.Step, Score: jsonwrite.Number(c.Score), Labels: c.Labels, Tokens: c.Tokens, Text: c.Text})
	}
	return out
}

func newPartial(p *tts.Partial) partial {
	out := partial{Index: p.Index, Parent: p.Parent, Text: p.Text, Tokens: p.Tokens, Logprob: jsonwrite.Rounded(jsonwrite.Finite(p.Logprob)),
		FinishReason: FinishReason(p.Finish), Answer: jsonwrite.Optional(p.Answer)}
	if p.Judged {
		out.Score = new(jsonwrite.Number(p.Score))
	}
	return out
}

// withText adds to out what a choice has of its own.
func withText(out *Candidate, c *tts.Candidate) *Candidate {
	out.Text, out.FinishReason = c.Text, FinishReason(c.Finish)
	return out
}

// stepsTo lists the solution steps that lead to a node.
func stepsTo(tree []tts.Node, at int) []Step {
	var steps []Step
	for ; at >= 0; at = tree[at].Parent {
		steps = append(steps, newStep(&tree[at]))
	}
	slices.Reverse(steps)
	return steps
}

func nodes(tree []tts.Node) []node {
	out := make([]node, len(tree))
	for i := range tree {
		out[i] = node{tree[i].Parent, tree[i].Step, newStep(&tree[i]), tree[i].Fate}
	}
	return out
}

func newStep(n *tts.Node) Step {
	return Step{n.Text, n.Tokens, jsonwrite.Number(n.Score)}
}
