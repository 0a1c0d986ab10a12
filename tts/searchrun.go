package tts

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts/answer"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/text"
)

// The reasons for which a search ends its own work.
var (
	errDecided = errors.New("tts: decided")
	errTime    = errors.New("tts: budget of time spent")
	errLeft    = errors.New("tts: the reader has left")
)

// searchRun is one execution of a search: its beams, its budget and the tree
// that they have grown.
type searchRun struct {
	Search
	resolvedPlan
	ctx       context.Context    // the request's
	work      context.Context    // ends with the budget of time too
	stop      context.CancelFunc // ends work
	req       *Request
	prompt    promptState
	decoding  decoding
	budget    budget
	tree      searchTree
	reporter  reporter
	elsewhere elsewhere
	root      *beam // forked into the candidates
	steps     int   // solution steps so far
	method    scaling.Method
	reason    StopReason
	degraded  atomic.Bool
}

// promptState is the request's prompt as the candidates share it.
type promptState struct {
	ids      []int32           // its tokens
	begun    string            // of the answer, in the prompt
	thinking bool              // it ends in a thought
	seq      *batcher.Sequence // computes the prompt
	judge    Judge             // likewise
}

// decoding is how every candidate is sampled.
type decoding struct {
	params sampling.Params
	ends   sampling.TokenSet // tokens that end an answer
	breaks sampling.TokenSet // those, and tokens that end a solution step
}

// budget counts the tokens of a search.
type budget struct {
	left      int          // that may still be generated
	generated atomic.Int64 // whatever became of them
}

// searchTree is what a search has found: solution steps, and the candidates
// that they led to.
type searchTree struct {
	nodes   []Node
	done    []*Candidate
	beams   map[*Candidate]*beam // that made those done
	charged int                  // tokens of nodes
	longest int                  // tokens of the longest one
}

// carryOut does what the method says.
func (r *searchRun) carryOut() error {
	switch r.method {
	case scaling.BeamSearch:
		return r.search(1)
	case scaling.DVTS:
		return r.search(r.plan.N / r.plan.Width)
	case scaling.Auto:
		return r.auto()
	}
	return r.sample(r.plan.N, r.plan.N)
}

// fits is how many of n beams the whole KV pool can hold at once, when they
// share so many tokens behind the prompt and each adds own ones. It depends on
// the search alone, not on what else is running: between requests the engine
// divides the pool.
func (r *searchRun) fits(n, shared, own int) int {
	st := r.Model.Engine.Stats()
	each := own/st.BlockLen + 2 // a begun block at either end
	room := max(1, (st.Blocks-(len(r.prompt.ids)+shared)/st.BlockLen)/each)
	if room < n {
		r.degraded.Store(true)
	}
	return min(n, room)
}

// read finds the answer in a candidate's text. What it thinks on the way is none.
func (r *searchRun) read(said string) (answer.Answer, bool) {
	return r.reader.Read(text.Answer(said, r.prompt.thinking))
}

// retire makes b a candidate, complete or not, and gives back what it holds.
func (r *searchRun) retire(b *beam) {
	b.close()
	c, tree := b.cand, &r.tree
	c.Index, c.Node = len(tree.done), b.node
	whole := r.prompt.begun + c.Text
	if calls, ok := r.req.calls(whole); ok {
		c.Answer, c.key = calls, calls
	} else if a, ok := r.read(whole); ok {
		c.Answer, c.key = a.Text, a.Key
	}
	tree.done = append(tree.done, c)
	tree.beams[c] = b
}

// record puts what b has gained into the tree. Only what stands there is
// charged: what was generated for candidates that the search never came to
// depends on how far they got before they were cancelled.
func (t *searchTree) record(b *beam, step int) {
	c := b.cand
	gained := len(c.IDs) - b.tokens
	t.charged += gained
	b.judge.Charge()
	t.nodes = append(t.nodes, Node{
		Parent: b.node, Step: step, Text: c.Text[b.shown:], Tokens: gained, Score: c.Score, Fate: FateKept,
	})
	t.longest = max(t.longest, gained)
	b.node, b.shown, b.tokens = len(t.nodes)-1, len(c.Text), len(c.IDs)
	if b.begun.IsZero() {
		b.begun = b.seq.Timing().FirstToken
	}
}

// outcome chooses among the candidates, and marks the choices in the tree.
func (r *searchRun) outcome() *Outcome {
	rk := rank(r.tree.done, r.plan.Select)
	nodes := r.tree.nodes
	out := &Outcome{
		Plan: r.plan, Method: r.method, N: r.plan.N, Steps: r.steps, Reason: r.reason, Select: rk.sel, Agreement: rk.agreement,
		Degraded: r.degraded.Load(), Candidates: rk.order, Tree: nodes,
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
	return out
}
