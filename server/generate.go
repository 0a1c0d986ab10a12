package server

import (
	"context"
	"fmt"
	"iter"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/metrics"
	"github.com/lutra-lm/lutra/tts"
)

// interactiveChoices is the largest number of choices of an interactive request. A request with
// more is a search in all but name, and must not make others wait.
const interactiveChoices = 8

// runner has models compute what calls ask for, and charges it to their keys.
type runner struct {
	apis apis
	log  zerolog.Logger
}

// generate answers a request for text.
func (r *runner) generate(c *api.Call, a *api.Ask) error {
	if a.Instead != nil {
		return c.JSON(a.Instead)
	}
	first := a.Requests[0] // which has what all of them share
	acc := &account{strategy: "single", searched: a.Search != nil, tokens: make([]int, a.Choices()),
		Request: metrics.Request{Start: c.Start, Model: a.Model.Name, N: first.N, MaxTokens: first.Sampling.MaxTokens}}
	if acc.searched {
		acc.strategy = a.Search.Plan.String()
	}
	recordOf(c.Context()).answeredBy(acc)
	if a.Applied {
		c.W.Header().Set(api.ScalingApplied, acc.strategy)
	}
	if o := a.Choice; o != nil && a.Applied {
		c.W.Header().Set(api.ScalingExpected, fmt.Sprintf("quality=%.3f;ms=%.3g;model=%q", o.Quality, o.ExpectedMS, o.Name))
	}
	if len(first.Unheld) > 0 {
		c.W.Header().Add(api.Warning, fields.Unheld(first.Unheld))
	}
	r.trace(c, a)
	if err := c.Lease.Grow(upFront(a, c.Size)); err != nil {
		return err
	}
	for _, req := range a.Requests {
		req.Background = a.Choices() > interactiveChoices || req.Continued != nil
		req.Opened = acc.opened
	}
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	if a.Begin != nil {
		defer a.Begin(cancel)()
	}
	settle, err := r.reserve(c, allowed(a))
	if err != nil {
		return err
	}
	g := &generation{Ask: a, Call: c, ctx: ctx, account: acc, growth: growth{lease: c.Lease, token: a.PerToken}}
	defer func() {
		tokens := acc.Usage.Prompt + acc.Usage.Completion + acc.Usage.Critiques
		if !g.ended { // whoever leaves a search early pays for what was under way
			tokens += acc.Usage.Cancelled
		}
		settle(tokens)
	}()
	events := tts.Filtered(run(ctx, a), a.Filters...)
	if a.Stream {
		return g.stream(events, func() { cancel(nil) })
	}
	return g.writeAnswer(events)
}

// candidatesAtOnce bounds the candidates that the searches of one request decode at
// once.
const candidatesAtOnce = 64

// run answers all prompts at once, or as many searches at a time as candidatesAtOnce allows.
func run(ctx context.Context, a *api.Ask) iter.Seq2[tts.Event, error] {
	atOnce := len(a.Requests)
	if a.Search != nil {
		atOnce = max(1, candidatesAtOnce/a.Search.Plan.N)
	}
	running := make(chan struct{}, atOnce)
	sources := make([]func(context.Context) iter.Seq2[tts.Event, error], len(a.Requests))
	for p, req := range a.Requests {
		sources[p] = func(ctx context.Context) iter.Seq2[tts.Event, error] {
			return func(yield func(tts.Event, error) bool) {
				select {
				case running <- struct{}{}:
				case <-ctx.Done():
					yield(tts.Event{}, ctx.Err())
					return
				}
				defer func() { <-running }()
				for e, err := range a.Strategy().Run(ctx, req) {
					e.Choice += p * req.N
					if !yield(e, err) {
						return
					}
				}
			}
		}
	}
	return tts.Interleave(ctx, sources...)
}

// trace logs what the client sent, at the only level where prompts are shown.
func (r *runner) trace(c *api.Call, a *api.Ask) {
	e := r.log.Trace()
	if !e.Enabled() {
		return
	}
	prompts := make([]tts.Prompt, len(a.Requests))
	for i, req := range a.Requests {
		prompts[i] = req.Prompt
	}
	e.Str("id", c.ID).Interface("prompts", prompts).Msg("prompt")
}
