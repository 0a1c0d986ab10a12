package server

import (
	"context"
	"iter"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
)

// interactiveChoices is how many choices an interactive request may have. One with
// more is a search in all but name, and must not make others wait.
const interactiveChoices = 8

// generation is the answer to a request for text in the making.
type generation struct {
	*api.Ask
	*api.Call
	account  *account
	growth   growth
	searched bool
	ended    bool // all of it has come
}

// generate answers a request for text, and returns what came of it beside an error.
func (s *Server) generate(c *api.Call, a *api.Ask) (*account, error) {
	if a.Instead != nil {
		return nil, c.JSON(a.Instead)
	}
	first := a.Requests[0] // which has what all of them share
	acc := newAccount(c, a.Model.Name, "single", first.N)
	acc.MaxTokens = first.Sampling.MaxTokens
	if a.Search != nil {
		acc.strategy = a.Search.Plan.String()
	}
	if a.Applied {
		c.W.Header().Set(api.ScalingApplied, acc.strategy)
	}
	if len(first.Unheld) > 0 {
		c.W.Header().Set(api.Warning, openai.Unheld(first.Unheld))
	}
	s.trace(c, a)
	if err := c.Lease.Grow(upFront(a)); err != nil {
		return acc, err
	}
	for _, req := range a.Requests {
		req.Background = a.Choices() > interactiveChoices || req.Continued != nil
	}
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	if a.Begin != nil {
		defer a.Begin(cancel)()
	}
	g := &generation{Ask: a, Call: c, account: acc, growth: growth{lease: c.Lease, token: a.PerToken}, searched: a.Search != nil}
	defer func() {
		tokens := acc.Usage.Prompt + acc.Usage.Completion
		if !g.ended { // whoever leaves a search early pays for what was under way
			tokens += acc.Usage.Cancelled
		}
		c.Key.Spend(time.Now(), tokens)
	}()
	events := g.observed(ctx, tts.Filtered(run(ctx, a), a.Filters...))
	if a.Stream {
		return acc, g.stream(events, func() { cancel(nil) })
	}
	return acc, g.whole(events)
}

// whole writes an answer that is not streamed.
func (g *generation) whole(events iter.Seq2[tts.Event, error]) error {
	for e, err := range events {
		if err == nil {
			err = g.growth.add(e, true)
		}
		if err != nil {
			return err
		}
		g.Encoder.Collect(e)
	}
	g.ended = true
	return g.Reply(func(p *jsonwrite.Reply) { g.Encoder.Full(p, g.account.Usage) })
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

// observed notes in the account what passes. An error that follows from the context's end
// becomes the cause of that end.
func (g *generation) observed(ctx context.Context, events iter.Seq2[tts.Event, error]) iter.Seq2[tts.Event, error] {
	return func(yield func(tts.Event, error) bool) {
		tokens := make([]int, g.Choices())
		for e, err := range events {
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			g.account.note(e, g.searched, tokens)
			if !yield(e, err) {
				return
			}
		}
	}
}

// trace logs what the client sent, at the only level where prompts are shown.
func (s *Server) trace(c *api.Call, a *api.Ask) {
	e := s.log.Trace()
	if !e.Enabled() {
		return
	}
	prompts := make([]tts.Prompt, len(a.Requests))
	for i, req := range a.Requests {
		prompts[i] = req.Prompt
	}
	e.Str("id", c.ID).Interface("prompts", prompts).Msg("prompt")
}

// countedAtOnce is about how many bytes of an answer are counted together.
const countedAtOnce = 64 << 10

// growth counts the bytes of an answer that gathers.
type growth struct {
	lease     *admission.Lease
	token     int64 // bytes that are held for a token
	uncounted int64
}

// add counts an event, and its text if that is kept. Errors: those of Lease.Grow.
func (g *growth) add(e tts.Event, text bool) error {
	if text {
		g.uncounted += held(e)
	}
	switch w := e.What.(type) {
	case tts.Text:
		g.uncounted += g.token * int64(w.Sampled)
	case tts.Usage:
		g.uncounted += g.token * int64(w.Completion)
	}
	if g.uncounted <= countedAtOnce {
		return nil
	}
	n := g.uncounted
	g.uncounted = 0
	return g.lease.Grow(n)
}

// held is about how many bytes an event holds in an answer that gathers.
func held(e tts.Event) (n int64) {
	switch w := e.What.(type) {
	case tts.Text:
		n = 2 * int64(len(w.Text))
		for i := range w.Tokens {
			n += tokenBytes(len(w.Tokens[i].Top))
		}
	case tts.Reasoning:
		n = 2 * int64(len(w))
	case tts.Calls:
		for i := range w {
			n += 128 + 4*int64(len(w[i].Arguments))
		}
	}
	return n
}

// tokenBytes is about how many bytes a token holds whose log-probability is sent,
// with top alternatives.
func tokenBytes(top int) int64 { return 128 + 48*int64(top) }

// upFront is about how many bytes an answer is known to hold from the beginning: its
// choices, the log-probabilities of an echoed prompt, the candidates of searches.
func upFront(a *api.Ask) int64 {
	n := perChoice * int64(a.Choices())
	for _, req := range a.Requests {
		token := int64(16)
		if req.Sampling.Logprobs {
			token = tokenBytes(req.Sampling.TopLogprobs)
		}
		limit := int64(a.Model.Context)
		if req.Echo {
			n += token * int64(req.N) * min(limit, int64(len(req.Prompt.Text)+len(req.Prompt.Tokens)))
		}
		if a.Search != nil {
			if m := int64(req.Sampling.MaxTokens); m > 0 {
				limit = min(limit, m)
			}
			n += token * min(int64(a.Search.Plan.Budget.Tokens), limit*int64(max(a.Search.Plan.N, batcher.Tile)))
		}
	}
	return n
}
