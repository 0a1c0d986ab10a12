package tts

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts/answer"
)

// Search is the strategy that carries out a Plan: parallel test-time scaling.
// All candidates of a request decode in shared batches, forked from one
// computed prompt; losers give back their memory at once.
//
// With one seed and one plan the candidates, the answer and the tokens charged
// are the same whatever else is running, unless a budget of time ends the
// search, Plan.N is AutoN, or the search is degraded.
type Search struct {
	Model     *Model
	Plan      Plan
	Limits    Limits // zero: DefaultLimits
	Verifiers Verifiers
}

var _ Strategy = Search{}

// Verifiers are the scorers that plans can name.
type Verifiers struct {
	Default string // for plans that name none; empty: there is none
	ByName  map[string]Scorer
}

// find returns the scorer that a plan asks for, and whether it is more than
// the model's own opinion.
func (v *Verifiers) find(p *Plan) (s Scorer, verified bool, err error) {
	name := p.Verifier
	if name == "" && (p.Method != SelfConsistency || p.Select == SelectWeightedVote) {
		name = v.Default
	}
	switch name {
	case "":
		if p.Method == BeamSearch || p.Method == DVTS {
			return nil, false, planError(CodeVerifierRequired, "verifier", "%s needs a verifier, and this server has no default one", p.Method)
		}
		return ByLogprob(), false, nil
	case VerifierLogprob:
		return ByLogprob(), true, nil
	case VerifierSelfCertainty:
		return BySelfCertainty(), true, nil
	}
	if s = v.ByName[name]; s == nil {
		return nil, false, planError(CodeVerifierNotFound, "verifier", "there is no verifier %.80q", name)
	}
	return s, true, nil
}

// settled is a checked plan with what it names.
type settled struct {
	plan        Plan
	temperature float32
	scorer      Scorer
	verified    bool
	reader      *answer.Reader
}

// Check returns the plan as it would be applied to this request, with all its
// defaults, or what is wrong with it as a *PlanError.
func (s Search) Check(req *Request) (Plan, error) {
	out, err := s.settle(req)
	return out.plan, err
}

func (s Search) settle(req *Request) (out settled, err error) {
	limits := s.Limits
	if limits == (Limits{}) {
		limits = DefaultLimits()
	}
	if err := s.Plan.Validate(limits); err != nil {
		return out, err
	}
	out.plan = s.Plan.withDefaults(&limits)
	p := &out.plan
	if p.Method == None {
		return out, nil
	}
	if out.scorer, out.verified, err = s.Verifiers.find(p); err != nil {
		return out, err
	}
	if p.Select == "" {
		switch {
		case out.verified:
			p.Select = SelectWeightedVote
		case p.Method == BestOfN:
			p.Select = SelectMax
		default:
			p.Select = SelectVote
		}
	}
	if p.N == AutoN {
		p.N = s.spare(p, &limits, req)
	}
	out.temperature = req.Sampling.Temperature
	if p.Temperature != nil {
		out.temperature = *p.Temperature
	}
	switch {
	case out.temperature == 0 && p.N > 1:
		return out, planError(CodeTemperatureZero, "temperature", "at temperature 0 all %d candidates would be the same", p.N)
	case req.choices() > p.N:
		return out, planError(CodePlanValue, "n", "%d candidates cannot give %d choices", p.N, req.choices())
	case req.Echo || req.NoTokens:
		return out, planError(CodePlanValue, "", "a search neither echoes the prompt nor generates nothing")
	}
	out.reader, err = p.Answer.Compile()
	return out, err
}

// autoTokens is what one candidate may cost when AutoN divides a budget.
const autoTokens = 128

// spare is the number of candidates that the current tile has lanes for, in
// whole widths.
func (s *Search) spare(p *Plan, l *Limits, req *Request) int {
	lanes := batcher.Tile - s.Model.Engine.Stats().Running%batcher.Tile
	n := min(lanes, l.N, p.Budget.Tokens/autoTokens)
	n = max(n, req.choices(), min(defaultWidth, l.N))
	p.Width = min(p.Width, n)
	return max(n/p.Width, 1) * p.Width
}

// The reasons for which a search ends its own work.
var (
	errDecided = errors.New("tts: decided")
	errTime    = errors.New("tts: budget of time spent")
	errLeft    = errors.New("tts: the reader has left")
)

// searching is one execution of a search.
type searching struct {
	Search
	settled
	ctx      context.Context    // the request's
	work     context.Context    // ends with the budget of time too
	stop     context.CancelFunc // ends work
	req      *Request
	yield    func(Delta, error) bool
	sampling sampling.Params   // of every candidate
	ends     sampling.TokenSet // tokens that end an answer
	breaks   sampling.TokenSet // those, and tokens that end a solution step

	prompt    int
	begun     string            // of the answer, in the prompt
	first     *batcher.Sequence // computes the prompt
	judge     Judge             // likewise
	root      *row              // forked into the candidates
	partials  *partials         // what is reported of those under way; nil: nobody wants to know
	left      int               // tokens that the budget has not spent
	charged   int               // tokens of what is in the tree
	generated atomic.Int64      // tokens, whatever became of them
	degraded  atomic.Bool

	done   []*Candidate
	rows   map[*Candidate]*row // that made those done
	tree   []Node
	steps  int
	long   int // tokens of the longest solution step so far
	method Method
	reason StopReason

	committed string     // delivered already
	told      Usage      // reported already
	drawn     int        // nodes of the tree, likewise
	announced int        // candidates done, likewise
	narrated  int        // node of the tree that reasoning has come to; -1: none
	exhibit   *Candidate // the last that reasoning has shown
}

// Run implements Strategy.
func (s Search) Run(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	if s.Plan.Method == None {
		return Single{Model: s.Model}.Run(ctx, req)
	}
	return func(yield func(Delta, error) bool) {
		var spent Usage
		err := s.run(ctx, req, yield, &spent)
		if err != nil && !errors.Is(err, errLeft) {
			yield(Delta{Usage: spent}, err)
		}
	}
}

// run returns the error that is still to be yielded, with what was spent since
// the last delta.
func (s Search) run(ctx context.Context, req *Request, yield func(Delta, error) bool, spent *Usage) error {
	ctx, cancel := context.WithCancel(ctx) // closes every sequence that is opened with it
	defer cancel()
	set, err := s.settle(req)
	if err != nil {
		return err
	}
	r := &searching{Search: s, settled: set, ctx: ctx, req: req, yield: yield, method: set.plan.Method, reason: StopComplete, narrated: -1}
	prepared, err := s.Model.prompt(ctx, req)
	if err != nil {
		return err
	}
	prompt := prepared.Tokens
	if prepared.Dropped > 0 { // judges read no more than the model does
		rest := *req
		rest.Prompt.Messages = prepared.messages
		r.req, req = &rest, &rest
	}
	r.begun = prepared.Begun
	if err := req.lists(s.Model, len(prompt), set.plan.N, set.plan.Budget.Tokens); err != nil {
		return err
	}
	seq, err := s.Model.Engine.OpenBackground(ctx, prompt)
	if err != nil {
		return err
	}
	defer seq.Close()
	judge, err := r.scorer.Open(ctx, s.Model, req, prompt)
	if err != nil {
		return err
	}
	defer judge.Close()
	if !yield(prepared.first(), nil) {
		return errLeft
	}

	work, free := context.WithTimeoutCause(ctx, r.plan.Budget.Time, errTime)
	defer free()
	r.work, r.stop = work, free
	r.sampling = req.sampling(s.Model)
	r.ends = r.sampling.Stop
	if r.plan.steps() {
		r.breaks = sampling.NewTokenSet(r.ends, s.Model.delimiters(r.plan.Step.Stop))
	}
	if r.plan.Include.Partial {
		r.partials = &partials{due: time.NewTimer(partialInterval)}
		defer r.partials.due.Stop()
	}
	r.rows, r.left = map[*Candidate]*row{}, r.plan.Budget.Tokens
	r.prompt, r.first, r.judge, r.root = len(prompt), seq, judge, r.newRow(seq, judge)
	if err := r.carryOut(); err != nil {
		*spent = r.news()
		return err
	}
	if context.Cause(r.work) == errTime {
		r.reason = StopBudgetTime
	}
	return r.finish()
}

// carryOut does what the method says.
func (r *searching) carryOut() error {
	switch r.method {
	case BeamSearch:
		return r.search(1)
	case DVTS:
		return r.search(r.plan.N / r.plan.Width)
	case Auto:
		return r.auto()
	}
	return r.sample(r.plan.N, r.plan.N)
}

// fits is how many of n rows the whole KV pool can hold at once, when they
// share so many tokens behind the prompt and each adds own ones. It depends on
// the search alone, not on what else is running: between requests the engine
// divides the pool.
func (r *searching) fits(n, shared, own int) int {
	st := r.Model.Engine.Stats()
	each := own/st.BlockLen + 2 // a begun block at either end
	room := max(1, (st.Blocks-(r.prompt+shared)/st.BlockLen)/each)
	if room < n {
		r.degraded.Store(true)
	}
	return min(n, room)
}

// retire takes in a candidate that is complete, or as far as it gets, and
// gives back what its row holds.
func (r *searching) retire(w *row) {
	w.close()
	c := w.cand
	c.Index, c.Node = len(r.done), w.node
	if a, ok := r.reader.Read(r.begun + c.Text); ok {
		c.Answer, c.key = a.Text, a.Key
	}
	r.done = append(r.done, c)
	r.rows[c] = w
}

// record puts what w has gained into the tree. Only what stands there is
// charged: what was generated for candidates that the search never came to
// depends on how far they got before they were cancelled.
func (r *searching) record(w *row, step int) {
	c := w.cand
	r.charged += len(c.IDs) - w.tokens
	w.judge.Charge()
	r.tree = append(r.tree, Node{
		Parent: w.node, Step: step, Text: c.Text[w.shown:], Tokens: len(c.IDs) - w.tokens, Score: c.Score, Fate: FateKept,
	})
	r.long = max(r.long, len(c.IDs)-w.tokens)
	w.node, w.shown, w.tokens = len(r.tree)-1, len(c.Text), len(c.IDs)
	if w.begun.IsZero() {
		w.begun = w.seq.Timing().FirstToken
	}
}
