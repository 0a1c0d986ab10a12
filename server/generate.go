package server

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/lutra-lm/lutra/tts"
)

// generation is a checked request for text.
type generation struct {
	model    *tts.Model
	name     string         // of the model as the client calls it
	requests []*tts.Request // one a prompt; choice i of prompt p is choice p*n+i of the answer
	stream   bool
	shape    shape
}

// shape writes answers the way one endpoint does. It may keep state between a
// stream's chunks.
type shape interface {
	whole(choices []choice, u tts.Usage) any
	begin(index int) any   // the chunk that opens a choice; nil: none
	chunk(d tts.Delta) any // the chunk for text or for an end
	alive() any            // a chunk that adds nothing
	end(u tts.Usage) any   // the chunk with the usage; nil: none
}

// choice collects a choice's deltas.
type choice struct {
	text   []byte
	tokens []tts.Token
	finish tts.Finish
}

// generate answers g.
func (s *Server) generate(w http.ResponseWriter, r *http.Request, g *generation) error {
	rec := note(r.Context())
	release, err := s.admit(rec.key)
	if err != nil {
		return err
	}
	defer release()
	rec.model, rec.strategy = g.model.Name, "single"
	defer func() { rec.key.spend(time.Now(), rec.usage.Prompt+rec.usage.Completion) }()

	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if s.opt.RequestTimeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, s.opt.RequestTimeout)
		defer cancel()
	}
	deltas := observed(ctx, g.run(ctx), rec)
	if g.stream {
		return s.stream(w, g, deltas, rec, cancel)
	}
	choices := make([]choice, g.choices())
	for d, err := range deltas {
		if err != nil {
			return err
		}
		c := &choices[d.Choice]
		c.text = append(c.text, d.Text...)
		c.tokens = append(c.tokens, d.Tokens...)
		if d.Finish != "" {
			c.finish = d.Finish
		}
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.opt.WriteTimeout))
	writeJSON(w, http.StatusOK, g.shape.whole(choices, rec.usage))
	return nil
}

// choices is the number of choices in the answer.
func (g *generation) choices() int { return len(g.requests) * g.requests[0].N }

// run answers all prompts at once.
func (g *generation) run(ctx context.Context) iter.Seq2[tts.Delta, error] {
	strategy := tts.Single{Model: g.model}
	sources := make([]func(context.Context) iter.Seq2[tts.Delta, error], len(g.requests))
	for p, req := range g.requests {
		sources[p] = func(ctx context.Context) iter.Seq2[tts.Delta, error] {
			return func(yield func(tts.Delta, error) bool) {
				for d, err := range strategy.Run(ctx, req) {
					d.Choice += p * req.N
					if !yield(d, err) {
						return
					}
				}
			}
		}
	}
	return tts.Interleave(ctx, sources...)
}

// observed notes in rec what passes. An error that the context's end has
// brought about becomes the reason of that end.
func observed(ctx context.Context, deltas iter.Seq2[tts.Delta, error], rec *record) iter.Seq2[tts.Delta, error] {
	return func(yield func(tts.Delta, error) bool) {
		for d, err := range deltas {
			if err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			rec.usage.Add(d.Usage)
			if d.Usage.Completion > 0 {
				rec.last = time.Now()
				if rec.first.IsZero() {
					rec.first = rec.last
				}
			}
			if d.Finish != "" && d.Choice == 0 {
				rec.finish, rec.timing = d.Finish, d.Timing
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// stream writes deltas as they come. Until the first, which says that the
// request has been accepted, errors have a status of their own.
func (s *Server) stream(w http.ResponseWriter, g *generation, deltas iter.Seq2[tts.Delta, error], rec *record, cancel func()) error {
	var out *events
	for d, err := range deltas {
		if err != nil && out == nil {
			return err
		}
		if out == nil {
			out = openEvents(w, s.opt.WriteTimeout, s.opt.KeepAlive, g.shape.alive, cancel)
			defer out.Close()
			for i := range g.choices() {
				out.send(g.shape.begin(i))
			}
		}
		if err != nil {
			rec.err = err
			out.send(toAPI(err).envelope())
			break
		}
		if d.Text != "" || len(d.Tokens) > 0 {
			out.send(g.shape.chunk(tts.Delta{Choice: d.Choice, Text: d.Text, Tokens: d.Tokens}))
		}
		if d.Finish != "" {
			out.send(g.shape.chunk(tts.Delta{Choice: d.Choice, Finish: d.Finish}))
		}
		if out.failed() {
			rec.err = context.Canceled
			return nil
		}
	}
	if rec.err == nil {
		out.send(g.shape.end(rec.usage))
	}
	out.done()
	return nil
}

// trace logs what the client sent, at the only level where prompts are shown.
func (s *Server) trace(r *http.Request, g *generation) {
	e := s.log.Trace()
	if !e.Enabled() {
		return
	}
	prompts := make([]tts.Prompt, len(g.requests))
	for i, req := range g.requests {
		prompts[i] = req.Prompt
	}
	e.Str("id", note(r.Context()).id).Interface("prompts", prompts).Msg("prompt")
}
