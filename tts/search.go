package tts

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts/answer"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Search is the strategy that carries out a Plan: parallel test-time scaling.
// All candidates of a request decode in shared batches, forked from one
// computed prompt; losers give back their memory at once.
//
// Where the model has a Source, other machines go on with some of the candidates; what
// they gain is judged here.
//
// With one seed and one plan the candidates, the answer and the tokens charged
// are the same whatever else is running, here and elsewhere, unless a budget of time ends the
// search, Plan.N is AutoN, or the search is degraded.
type Search struct {
	Model     *Model
	Plan      scaling.Plan
	Limits    scaling.Limits // zero: DefaultLimits
	Verifiers Verifiers
}

var _ Strategy = Search{}

// resolvedPlan is a checked plan with what it names.
type resolvedPlan struct {
	plan        scaling.Plan
	temperature float32
	scorer      Scorer
	verified    bool
	reader      *answer.Reader
}

// Check returns the plan as it would be applied to this request, with all its
// defaults, or what is wrong with it as a *scaling.Error.
func (s Search) Check(req *Request) (scaling.Plan, error) {
	out, err := s.resolve(req)
	return out.plan, err
}

func (s Search) resolve(req *Request) (out resolvedPlan, err error) {
	limits := s.Limits
	if limits == (scaling.Limits{}) {
		limits = scaling.DefaultLimits()
	}
	if err := s.Plan.Validate(limits); err != nil {
		return out, err
	}
	out.plan = s.Plan.WithDefaults(&limits)
	p := &out.plan
	if p.Method == scaling.None {
		return out, nil
	}
	if out.scorer, out.verified, err = s.Verifiers.resolve(p); err != nil {
		return out, err
	}
	if p.Select == "" {
		switch {
		case out.verified:
			p.Select = scaling.SelectWeightedVote
		case p.Method == scaling.BestOfN:
			p.Select = scaling.SelectMax
		default:
			p.Select = scaling.SelectVote
		}
	}
	if p.N == scaling.AutoN {
		p.N = s.fillTile(p, &limits, req)
	}
	out.temperature = req.Sampling.Temperature
	if p.Temperature != nil {
		out.temperature = *p.Temperature
	}
	switch {
	case out.temperature == 0 && p.N > 1:
		return out, scaling.Errorf(scaling.CodeTemperatureZero, "temperature", "at temperature 0 all %d candidates would be the same", p.N)
	case req.choices() > p.N:
		return out, scaling.Errorf(scaling.CodeValue, "n", "%d candidates cannot give %d choices", p.N, req.choices())
	case req.Echo || req.NoTokens:
		return out, scaling.Errorf(scaling.CodeValue, "", "a search neither echoes the prompt nor generates nothing")
	}
	out.reader, err = p.Answer.Compile()
	return out, err
}

// autoTokens is what one candidate may cost when AutoN divides a budget.
const autoTokens = 128

// fillTile is the number of candidates that fill the idle lanes of the current
// tile, in whole widths.
func (s *Search) fillTile(p *scaling.Plan, l *scaling.Limits, req *Request) int {
	lanes := batcher.Tile - s.Model.Engine.Stats().Running%batcher.Tile
	n := min(lanes, l.N, p.Budget.Tokens/autoTokens)
	n = max(n, req.choices(), min(scaling.DefaultWidth, l.N))
	p.Width = min(p.Width, n)
	return max(n/p.Width, 1) * p.Width
}

// Run implements Strategy.
func (s Search) Run(ctx context.Context, req *Request) iter.Seq2[Event, error] {
	if s.Plan.Method == scaling.None {
		return Single{Model: s.Model}.Run(ctx, req)
	}
	return func(yield func(Event, error) bool) {
		if err := s.run(ctx, req, yield); err != nil && !errors.Is(err, errLeft) {
			yield(Event{}, err)
		}
	}
}

// Prepare implements Strategy.
func (s Search) Prepare(ctx context.Context, req *Request) (*Prepared, error) {
	if s.Plan.Method == scaling.None {
		return Single{Model: s.Model}.Prepare(ctx, req)
	}
	set, err := s.resolve(req)
	if err != nil {
		return nil, err
	}
	return req.prepare(ctx, s.Model, set.plan.N, set.plan.Budget.Tokens)
}

// run returns the error that is still to be yielded.
func (s Search) run(ctx context.Context, req *Request, yield func(Event, error) bool) error {
	ctx, cancel := context.WithCancel(ctx) // closes every sequence that is opened with it
	defer cancel()
	set, err := s.resolve(req)
	if err != nil {
		return err
	}
	r := &searchRun{Search: s, resolvedPlan: set, ctx: ctx, req: req, method: set.plan.Method, reason: StopComplete}
	r.reporter = reporter{run: r, yield: yield, shownNode: -1}
	prepared, err := req.prepare(ctx, s.Model, set.plan.N, set.plan.Budget.Tokens)
	if err != nil {
		return err
	}
	prompt := prepared.Tokens
	if prepared.Dropped > 0 { // judges read no more than the model does
		rest := *req
		rest.Prompt.Messages = prepared.messages
		r.req, req = &rest, &rest
	}
	r.prompt.begun, r.prompt.thinking = prepared.Begun, prepared.Thinking
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
	if !yield(prepared.opening(), nil) {
		return errLeft
	}

	work, free := context.WithTimeoutCause(ctx, r.plan.Budget.Time, errTime)
	defer free()
	r.work, r.stop = work, free
	r.decoding.params = req.sampling(s.Model, prepared.Thinking)
	r.decoding.ends = r.decoding.params.Stop
	if r.plan.Stepwise() {
		r.decoding.breaks = sampling.NewTokenSet(r.decoding.ends, s.Model.delimiters(r.plan.Step.Stop))
	}
	if r.plan.Include.Partial {
		r.reporter.partials = &partials{due: time.NewTimer(partialInterval)}
		defer r.reporter.partials.due.Stop()
	}
	r.tree.beams, r.budget.left = map[*Candidate]*beam{}, r.plan.Budget.Tokens
	r.share()
	r.prompt.ids, r.prompt.seq, r.prompt.judge, r.root = prompt, seq, judge, r.newBeam(seq, judge)
	if err := r.carryOut(); err != nil {
		if errors.Is(err, errLeft) {
			return err
		}
		return cmp.Or(r.reporter.send(Event{What: r.reporter.unreported()}), err)
	}
	if context.Cause(r.work) == errTime {
		r.reason = StopBudgetTime
	}
	return r.reporter.finish(r.outcome())
}
