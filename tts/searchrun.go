package tts

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// searchRun is one execution of a search: its beams, its budget and the tree
// that they have grown. Methods of all kinds of search share it.
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
	critic    Critic // the prompt's judge, where it writes critiques; else nil
	root      *beam  // forked into the candidates
	steps     int    // solution steps so far
	method    scaling.Method
	reason    StopReason
	over      func(total int) (StopReason, bool) // whether the candidates complete so far settle the outcome of total ones
	trusted   float64                            // least confidence of a group of tokens, once DeepConf has found it; 0: none
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

// delimiters are texts after which, but not within a token, a solution step may end.
func (r *searchRun) delimiters() []string {
	if r.plan.Step.Members {
		return append(slices.Clip(r.plan.Step.Stop), ",")
	}
	return r.plan.Step.Stop
}

// fits returns how many of n beams the whole KV pool can hold at once, when they
// share shared tokens after the prompt and each adds own ones. It depends on
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

// read finds the answer in a candidate's text, or the calls of tools that it ends in. What it
// thinks on the way is neither.
func (r *searchRun) read(c *Candidate, written string) {
	said := r.Model.ThoughtMarks().Answer(r.prompt.begun+written, r.prompt.thinking)
	if r.req.Calling != nil {
		if calls, ok := r.req.Calling.Read(said); ok {
			c.Answer, c.key, c.calls = calls, "\x00"+calls, true // no text has that key
			return
		}
	}
	if a, ok := r.reader.Read(said); ok {
		c.Answer, c.key = a.Text, a.Key
	}
}

// retire makes b a candidate, complete or not, and gives back what it holds.
func (r *searchRun) retire(b *beam) {
	b.close()
	c, tree := b.cand, &r.tree
	c.Index, c.Node = len(tree.done), b.node
	r.read(c, c.Text)
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

// beam is a candidate in the making: a sequence of the generator, the judge
// that follows it, and its text so far.
type beam struct {
	cand       *Candidate
	seq        *batcher.Sequence
	judge      Judge
	dec        *decoder
	shape      *shape // of text
	text       []byte
	step       []byte // bytes of the solution step that is being written
	stepTokens int    // of it
	logprobs   float64
	certainty  float64
	group      group     // of its latest tokens, with DeepConf
	begun      time.Time // first token

	run    iter.Seq2[sampling.Token, error] // under way
	params sampling.Params                  // of it
	limit  int                              // tokens at most, with those before the run
	grant  int                              // of them, those that the budget has granted so far
	paused bool                             // it has used up its grant without coming to an end
	whole  bool                             // it ends with the answer, else with the solution step

	past []*beam // with particle Gibbs: itself at the end of each of its solution steps, without sequence and judge

	partial *partial // what reports say of it; nil: they are not wanted

	node   int // its last in the tree
	shown  int // length of text up to there
	tokens int // generated up to there
}

// reporter streams how a search goes to its reader, and knows what of that has
// been streamed. It changes nothing in the run.
type reporter struct {
	run      *searchRun
	yield    func(Event, error) bool
	partials *partials // candidates in the making; nil: they are not reported

	// What has been reported so far.
	reported        Usage
	committed       string     // text of every choice
	shownNodes      int        // of the tree
	shownCandidates int        // complete ones
	shownNode       int        // of the tree, that reasoning has come to; -1: none
	shownCandidate  *Candidate // the last one in reasoning
}

// partials are the candidates of one round of decoding. The goroutine that
// extends a candidate updates its entry, the search's own one reports. Texts
// are the candidates' own, not copies: a reader that lags costs no memory.
type partials struct {
	due *time.Timer // of the next report

	mu    sync.Mutex // guards what follows
	beams []*partial
	next  int // the entry with which the next report begins, so that none is left out for good
}

type partial struct {
	all    *partials
	now    Partial // but for the text
	text   []byte  // the candidate's whole text; bytes are only ever added to it
	sent   int     // bytes of it that have been reported
	scores int     // that the candidate had when the round began
	news   bool    // there is something to report
}

// elsewhere is what a search knows of the machines that work for it.
type elsewhere struct {
	source Source // nil: all is computed here
	wrong  sync.Map
}

// The reasons for which a search ends its own work.
var (
	errDecided  = errors.New("tts: decided")
	errTime     = errors.New("tts: budget of time spent")
	errDeadline = errors.New("tts: the deadline has come")
	errLeft     = errors.New("tts: the reader has left")
)

// close gives back what a beam holds.
func (b *beam) close() {
	b.seq.Close()
	b.judge.Close()
}
