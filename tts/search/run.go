package search

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Run implements Strategy.
func (s Search) Run(ctx context.Context, req *tts.Request) iter.Seq2[tts.Event, error] {
	if s.Plan.Method == scaling.None {
		return tts.Single{Model: s.Model}.Run(ctx, req)
	}
	return func(yield func(tts.Event, error) bool) {
		if err := s.run(ctx, req, yield); err != nil && !errors.Is(err, errLeft) {
			yield(tts.Event{}, err)
		}
	}
}

// Prepare implements Strategy.
func (s Search) Prepare(ctx context.Context, req *tts.Request) (*tts.Prepared, error) {
	if s.Plan.Method == scaling.None {
		return tts.Single{Model: s.Model}.Prepare(ctx, req)
	}
	set, err := s.resolve(ctx, req)
	if err != nil {
		return nil, err
	}
	return req.PrepareFor(ctx, s.Model, set.plan.N, set.plan.Budget.Tokens)
}

// run returns the error that is still to be yielded.
func (s Search) run(ctx context.Context, req *tts.Request, yield func(tts.Event, error) bool) error {
	ctx, cancel := context.WithCancel(ctx) // closes every sequence that is opened with it
	defer cancel()
	begun := time.Now()
	set, err := s.resolve(ctx, req)
	if err != nil {
		return err
	}
	in := &searchInput{resolvedPlan: set, model: s.Model, req: req, ctx: ctx}
	prepared, err := req.PrepareFor(ctx, s.Model, set.plan.N, set.plan.Budget.Tokens)
	if err != nil {
		return err
	}
	if prepared.Dropped > 0 { // judges read no more than the model does
		rest := *req
		rest.Prompt.Messages = prepared.Messages
		in.req = &rest
	}
	free, err := in.open(prepared)
	if err != nil {
		return err
	}
	defer free()
	if !yield(prepared.Opening(), nil) {
		return errLeft
	}
	defer s.timed(in, begun)()
	r := newSearchRun(in, yield)
	defer r.close()
	return r.answer()
}

// open computes the prompt in the generator's engine and in the verifier's, and says how
// candidates are sampled. free releases what that takes.
func (in *searchInput) open(prepared *tts.Prepared) (free func(), err error) {
	p := &in.prompt
	p.ids, p.begun, p.thinking = prepared.Tokens, prepared.Prefix, prepared.Thinking
	if p.seq, err = in.model.Engine.OpenBackground(in.ctx, p.ids); err != nil {
		return nil, err
	}
	in.req.TellOpened(p.seq)
	if p.judge, err = in.scorer.Open(in.ctx, in.model, in.req, p.ids); err != nil {
		p.seq.Close()
		return nil, err
	}
	d := &in.decoding
	d.params = in.req.ParamsFor(in.model, p.thinking)
	d.ends = d.params.Stop
	if in.plan.Stepwise() {
		d.breaks = sampling.NewTokenSet(d.ends, tts.DelimitersOf(in.model, in.delimiters()))
	}
	return func() { p.judge.Close(); p.seq.Close() }, nil
}

// answer has the method grow candidates, chooses among them and delivers the choice.
func (r *searchRun) answer() error {
	root := r.grow.root
	m := methods[r.plan.Method].start(r)
	r.grow.remote.share()
	reason, err := m.grow(r)
	if err != nil && !r.outOfTime(err) {
		if errors.Is(err, errLeft) {
			return err
		}
		return cmp.Or(r.report.send(tts.Event{What: r.report.unreported()}), err)
	}
	out := r.outcome(r.settle(root, reason))
	if err := r.report.choiceReasoning(out); err != nil {
		return err
	}
	return r.report.finish(out)
}
