package openai

import (
	"slices"
	"sync/atomic"

	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// SearchReport is what an answer says of the searches behind it, one a prompt. A
// nil one says nothing, and its answers look as if there had been no search.
type SearchReport struct {
	include  scaling.Include
	each     bool // candidate as it becomes complete
	n        int  // choices of a prompt
	now      atomic.Pointer[searchProgress]
	outcomes []*tts.Outcome // of each prompt; nil until its search has ended
}

func NewSearchReport(p *scaling.Plan) *SearchReport {
	return &SearchReport{include: p.Include, each: p.Stream == scaling.StreamCandidates}
}

// Expect says how many prompts the report is of, and how many choices each has. A
// nil report may be asked.
func (t *SearchReport) Expect(prompts, n int) {
	if t != nil {
		t.n, t.outcomes = n, make([]*tts.Outcome, prompts)
	}
}

// searchProgress is where a search stands.
type searchProgress struct {
	Prompt     *int           `json:"prompt,omitempty"` // whose search it is, where a request has several
	Method     scaling.Method `json:"method"`
	Select     scaling.Select `json:"select"`
	Step       int            `json:"step"`
	Live       int            `json:"live"`     // candidates in the making
	Finished   int            `json:"finished"` // candidates complete
	Tokens     int            `json:"tokens"`   // generated so far
	Best       float64        `json:"best"`
	Leader     *string        `json:"leader"` // the answer in front
	Agreement  float64        `json:"agreement"`
	Candidates []*candidate   `json:"candidates,omitempty"` // complete since the last progress
	Added      []node         `json:"added,omitempty"`      // to the tree since then; fates may yet change
	Partial    []partial      `json:"partial,omitempty"`    // what candidates in the making have gained since then
}

// partial is a candidate in the making.
type partial struct {
	Index        int      `json:"index"`
	Parent       int      `json:"parent"`  // node of the tree that it continues; -1: the prompt
	Text         string   `json:"text"`    // gained
	Tokens       int      `json:"tokens"`  // generated so far
	Logprob      float64  `json:"logprob"` // mean over them
	FinishReason *string  `json:"finish_reason,omitempty"`
	Answer       *string  `json:"answer,omitempty"`
	Score        *float64 `json:"score,omitempty"` // null: not judged yet
}

// searchOutcome is what a search came to.
type searchOutcome struct {
	Method     scaling.Method `json:"method"`
	N          int            `json:"n"`
	Width      int            `json:"width,omitempty"`
	Steps      int            `json:"steps"`
	StopReason tts.StopReason `json:"stop_reason"`
	Select     scaling.Select `json:"select"`
	Agreement  float64        `json:"agreement"`
	Degraded   bool           `json:"degraded,omitempty"`
	Candidates []*candidate   `json:"candidates,omitempty"`
	Tree       []node         `json:"tree,omitempty"`
}

// candidate is one of a search's answers. Choices have their text elsewhere.
type candidate struct {
	Candidate    int       `json:"candidate"`
	Text         string    `json:"text,omitempty"`
	FinishReason *string   `json:"finish_reason,omitempty"`
	Tokens       int       `json:"tokens"`
	Score        float64   `json:"score"`
	Logprob      float64   `json:"logprob"` // mean over the tokens
	Answer       *string   `json:"answer"`  // null: none was found
	Votes        int       `json:"votes"`
	StepScores   []float64 `json:"step_scores"`
	Steps        []step    `json:"steps,omitempty"`
}

// step is a part of a candidate that the search decided about.
type step struct {
	Text   string  `json:"text"`
	Tokens int     `json:"tokens"`
	Score  float64 `json:"score"`
}

// node is a step in the tree of all that the search tried.
type node struct {
	Parent int `json:"parent"` // place in the list; -1: the prompt
	Depth  int `json:"step"`
	step
	Fate tts.Fate `json:"fate"`
}

// scalingUsage says what the tokens of a search were good for: the first two
// add up to the completion's; nobody is charged with the last.
type scalingUsage struct {
	Chosen    int `json:"chosen_tokens"`
	Discarded int `json:"discarded_tokens"`
	Verifier  int `json:"verifier_tokens"`
	Cancelled int `json:"cancelled_tokens"`
}

// Update takes in what a delta says of the search; true means that it is worth a
// chunk of its own.
func (t *SearchReport) Update(d *tts.Delta) bool {
	if t == nil {
		return false
	}
	if d.Outcome != nil {
		t.outcomes[d.Choice/t.n] = d.Outcome
	}
	p := d.Progress
	if p == nil {
		return false
	}
	now := &searchProgress{Method: p.Method, Select: p.Select, Step: p.Step, Live: p.Live, Finished: p.Finished, Tokens: p.Tokens,
		Best: jsonwrite.Number(p.Best), Leader: jsonwrite.Optional(p.Leader), Agreement: p.Agreement}
	if len(t.outcomes) > 1 {
		now.Prompt = new(d.Choice / t.n)
	}
	if t.include.Tree {
		now.Added = nodes(p.Added)
	}
	if t.each {
		for i := range p.Ended {
			now.Candidates = append(now.Candidates, whole(newCandidate(&p.Ended[i]), &p.Ended[i]))
		}
	}
	for i := range p.Partial {
		now.Partial = append(now.Partial, newPartial(&p.Partial[i]))
	}
	t.now.Store(now)
	return true
}

// progress is the latest, for chunks that have nothing else to say. It may be
// called while update is.
func (t *SearchReport) progress() any {
	if t == nil {
		return nil
	}
	now := t.now.Load()
	if now == nil {
		return nil
	}
	if now.Candidates != nil || now.Added != nil || now.Partial != nil { // are news once
		later := *now
		later.Candidates, later.Added, later.Partial = nil, nil, nil
		t.now.CompareAndSwap(now, &later)
	}
	return now
}

// choice is the report of a choice's candidate.
func (t *SearchReport) choice(i int) *candidate {
	if t == nil || t.outcomes[i/t.n] == nil {
		return nil
	}
	o := t.outcomes[i/t.n]
	c := o.Choices[i%t.n]
	out := newCandidate(c)
	if t.include.Steps {
		out.Steps = path(o.Tree, c.Node)
	}
	return out
}

// summary is the report of the search as a whole, or of all of them in a list.
func (t *SearchReport) summary() any {
	if t == nil {
		return nil
	}
	if len(t.outcomes) == 1 {
		return t.search(0)
	}
	all := make([]any, len(t.outcomes))
	for p := range all {
		all[p] = t.search(p * t.n)
	}
	return all
}

// search is the report of the search that choice i is the first choice of; nil: it is
// that of none.
func (t *SearchReport) search(i int) any {
	if t == nil || i%t.n != 0 || t.outcomes[i/t.n] == nil {
		return nil
	}
	o := t.outcomes[i/t.n]
	out := &searchOutcome{Method: o.Method, N: o.N, Steps: o.Steps, StopReason: o.Reason, Select: o.Select, Agreement: o.Agreement, Degraded: o.Degraded}
	if o.Method == scaling.BeamSearch || o.Method == scaling.DVTS {
		out.Width = o.Plan.Width
	}
	if t.include.Tree {
		out.Tree = nodes(o.Tree)
	}
	if !t.include.Candidates {
		return out
	}
	for _, c := range o.Candidates {
		one := whole(newCandidate(c), c)
		if t.include.Steps {
			one.Steps = path(o.Tree, c.Node)
		}
		out.Candidates = append(out.Candidates, one)
	}
	return out
}

// usage is a request's account, divided once the searches have reported theirs.
func (t *SearchReport) usage(u tts.Usage) usage {
	out := newUsage(u)
	if t == nil {
		return out
	}
	var sum scalingUsage
	for _, o := range t.outcomes {
		if o == nil {
			return out
		}
		sum.Chosen += o.Usage.Chosen
		sum.Discarded += o.Usage.Discarded
		sum.Verifier += o.Usage.Verifier
		sum.Cancelled += o.Usage.Cancelled
	}
	out.Scaling = &sum
	return out
}

func newCandidate(c *tts.Candidate) *candidate {
	out := &candidate{Candidate: c.Index, Tokens: len(c.IDs), Score: jsonwrite.Number(c.Score), Logprob: jsonwrite.Rounded(jsonwrite.Finite(c.Logprob)), Answer: jsonwrite.Optional(c.Answer), Votes: c.Votes,
		StepScores: make([]float64, len(c.StepScores))}
	for i, s := range c.StepScores {
		out.StepScores[i] = jsonwrite.Number(s)
	}
	return out
}

func newPartial(p *tts.Partial) partial {
	out := partial{Index: p.Index, Parent: p.Parent, Text: p.Text, Tokens: p.Tokens, Logprob: jsonwrite.Rounded(jsonwrite.Finite(p.Logprob)),
		FinishReason: finishReason(p.Finish), Answer: jsonwrite.Optional(p.Answer)}
	if p.Judged {
		out.Score = new(jsonwrite.Number(p.Score))
	}
	return out
}

// whole adds to out what choices have elsewhere.
func whole(out *candidate, c *tts.Candidate) *candidate {
	out.Text, out.FinishReason = c.Text, finishReason(c.Finish)
	return out
}

// path lists the steps that lead to a node.
func path(tree []tts.Node, at int) []step {
	var steps []step
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

func newStep(n *tts.Node) step { return step{n.Text, n.Tokens, jsonwrite.Number(n.Score)} }
