package tts

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts/scaling"
)

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
	set, err := s.resolve(ctx, req)
	if err != nil {
		return nil, err
	}
	return req.prepare(ctx, s.Model, set.plan.N, set.plan.Budget.Tokens)
}

// run returns the error that is still to be yielded.
func (s Search) run(ctx context.Context, req *Request, yield func(Event, error) bool) error {
	ctx, cancel := context.WithCancel(ctx) // closes every sequence that is opened with it
	defer cancel()
	begun := time.Now()
	set, err := s.resolve(ctx, req)
	if err != nil {
		return err
	}
	r := &searchRun{Search: s, resolvedPlan: set, ctx: ctx, req: req, method: set.plan.Method, reason: StopComplete}
	r.over = r.decided
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
	r.prompt.begun, r.prompt.thinking = prepared.Prefix, prepared.Thinking
	seq, err := s.Model.Engine.OpenBackground(ctx, prompt)
	if err != nil {
		return err
	}
	defer seq.Close()
	req.opened(seq)
	judge, err := r.scorer.Open(ctx, s.Model, req, prompt)
	if err != nil {
		return err
	}
	defer judge.Close()
	r.critic, _ = judge.(Critic)
	if !yield(prepared.opening(), nil) {
		return errLeft
	}

	work, free := context.WithTimeoutCause(ctx, r.plan.Budget.Time, errTime)
	defer free()
	if set.plan.Deadline > 0 {
		work, free = context.WithDeadlineCause(work, s.ends(begun, &set.plan), errDeadline)
		defer free()
	}
	r.work, r.stop = work, free
	r.decoding.params = req.sampling(s.Model, prepared.Thinking)
	r.decoding.ends = r.decoding.params.Stop
	if r.plan.Stepwise() {
		r.decoding.breaks = sampling.NewTokenSet(r.decoding.ends, s.Model.delimiters(r.delimiters()))
	}
	if r.plan.Include.Partial {
		r.reporter.partials = &partials{due: time.NewTimer(partialInterval)}
		defer r.reporter.partials.due.Stop()
	}
	if r.method == scaling.DeepConfidence {
		r.decoding.params.TopLogprobs = max(r.decoding.params.TopLogprobs, r.plan.DeepConf.TopK)
	}
	r.tree.beams, r.budget.left = map[*Candidate]*beam{}, r.plan.Budget.Tokens
	r.share()
	root := r.newBeam(seq, judge)
	r.prompt.ids, r.prompt.seq, r.prompt.judge, r.root = prompt, seq, judge, root
	err = r.carryOut()
	if err != nil && !r.outOfTime(err) {
		if errors.Is(err, errLeft) {
			return err
		}
		return cmp.Or(r.reporter.send(Event{What: r.reporter.unreported()}), err)
	}
	r.settle(root)
	out := r.outcome()
	if err := r.reporter.choiceReasoning(out); err != nil {
		return err
	}
	return r.reporter.finish(out)
}

// carryOut does what the method says.
func (r *searchRun) carryOut() error {
	switch r.method {
	case scaling.BeamSearch:
		return r.search(1)
	case scaling.DVTS:
		return r.search(r.plan.N / r.plan.Width)
	case scaling.ParticleFiltering:
		return r.sampleParticles()
	case scaling.DeepConfidence:
		return r.deepConf()
	case scaling.Auto:
		return r.auto()
	}
	if r.plan.Adaptive.On {
		return r.buy()
	}
	return r.sample(r.plan.N, r.plan.N)
}
