package server

import (
	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/verify"
)

// countedAtOnce is about how many bytes of an answer are counted together.
const countedAtOnce = 64 << 10

// growth counts the bytes of an answer that gathers.
type growth struct {
	lease     *admission.Lease
	token     int64 // bytes that are held for a token
	uncounted int64
}

// add counts an event, and its text if that is kept. It returns errors of Lease.Grow.
func (g *growth) add(e tts.Event, text bool) error {
	if text {
		g.uncounted += held(e)
	}
	switch w := e.What.(type) {
	case tts.Text:
		g.uncounted += g.token * int64(w.Sampled)
	case tts.Usage:
		g.uncounted += g.token * int64(w.Completion+w.Critiques)
	}
	if g.uncounted <= countedAtOnce {
		return nil
	}
	n := g.uncounted
	g.uncounted = 0
	return g.lease.Grow(n)
}

// held returns about how many bytes an event holds in an answer that gathers.
func held(e tts.Event) (n int64) {
	switch w := e.What.(type) {
	case tts.Text:
		n = 2 * int64(len(w.Text))
		for i := range w.Tokens {
			n += tokenBytes(len(w.Tokens[i].Top))
		}
	case tts.TokenIDs:
		n = api.PerID * int64(len(w))
	case tts.Reasoning:
		n = 2 * int64(len(w))
	case tts.Calls:
		for i := range w {
			n += 128 + 4*int64(len(w[i].Arguments))
		}
	}
	return n
}

// tokenBytes returns about how many bytes a token holds whose log-probability is sent,
// with top alternatives.
func tokenBytes(top int) int64 { return 128 + 48*int64(top) }

// mostMarks is about how many tokens a chat template adds to a conversation's.
const mostMarks = 1 << 10

// upFront returns about how many bytes an answer is known to hold from the beginning: its
// choices, the log-probabilities of a prompt, the candidates of searches and their checks. body is the size of the
// request's.
func upFront(a *api.Ask, body int) int64 {
	n := perChoice * int64(a.Choices())
	if a.Search != nil {
		n += verify.Memory(&a.Search.Plan.Verify)
	}
	for _, req := range a.Requests {
		token := int64(16)
		if req.Sampling.Logprobs {
			token = tokenBytes(req.Sampling.TopLogprobs)
		}
		limit := int64(a.Model.Context)
		if req.Echo {
			n += token * int64(req.N) * min(limit, int64(len(req.Prompt.Text)+len(req.Prompt.Tokens)))
		}
		if req.ScorePrompt {
			n += tokenBytes(req.PromptTop) * min(limit, int64(body+mostMarks)/int64(len(a.Requests)))
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
