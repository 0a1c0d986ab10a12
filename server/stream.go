package server

import (
	"context"
	"iter"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
)

// generation is the answer to a request for text in the making.
type generation struct {
	*api.Ask
	*api.Call
	ctx     context.Context
	account *account
	growth  growth
	ended   bool // all of it has come
}

// take notes an event in the account of the answer, and counts what is held of it, with its
// text if that is kept. An error that follows from the context's end becomes the cause of
// that end.
func (g *generation) take(e tts.Event, err error, kept bool) error {
	if g.account.note(e); err == nil {
		return g.growth.add(e, kept)
	}
	if g.ctx.Err() != nil {
		return context.Cause(g.ctx)
	}
	return err
}

// stream writes events as they come. The first says that the request has been accepted;
// errors before it have a status of their own. gone is called when the client does not take
// what is written.
func (g *generation) stream(events iter.Seq2[tts.Event, error], gone func()) error {
	var out *jsonwrite.Events
	var failed error
	open := g.Choices()
	for e, err := range events {
		if failed = g.take(e, err, g.Kept); failed != nil {
			break
		}
		begins := out == nil
		if begins {
			recordOf(g.ctx).waiting = nil
			out = jsonwrite.OpenEvents(g.W, g.Lines, g.WriteTimeout, g.KeepAlive, g.Encoder.KeepAlive, gone)
			defer out.Close()
		}
		if w, ok := e.What.(tts.Text); !ok || w.Text != "" || len(w.Tokens) > 0 {
			out.Make(func() any { return g.Encoder.Event(e) })
		}
		if _, ended := e.What.(tts.End); ended {
			open--
		}
		if begins {
			out.Later()
		} else if !e.More && open > 0 { // else more follows at once
			out.Flush()
		}
		if out.Failed() {
			return context.Canceled
		}
	}
	if out == nil {
		return failed
	}
	var fault *api.Fault
	if g.ended = failed == nil; !g.ended {
		fault = toFault(failed)
	}
	out.End(func() any { return g.Encoder.End(g.account.Usage, fault) })
	return failed
}

// writeAnswer writes an answer that is not streamed.
func (g *generation) writeAnswer(events iter.Seq2[tts.Event, error]) error {
	for e, err := range events {
		if err := g.take(e, err, true); err != nil {
			return err
		}
		g.Encoder.Collect(e)
	}
	g.ended = true
	return g.Reply(func(p *jsonwrite.Reply) { g.Encoder.Full(p, g.account.Usage) })
}
