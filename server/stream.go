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
	account  *account
	growth   growth
	searched bool
	ended    bool // all of it has come
}

// stream writes events as they come. The first says that the request has been accepted;
// errors before it have a status of their own. gone is called when the client does not take
// what is written.
func (g *generation) stream(events iter.Seq2[tts.Event, error], gone func()) error {
	var out *jsonwrite.Events
	var failed error
	open := g.Choices()
	for e, err := range events {
		if out == nil {
			if err != nil {
				return err
			}
			out = jsonwrite.OpenEvents(g.W, g.Lines, g.WriteTimeout, g.KeepAlive, g.Encoder.KeepAlive, gone)
			defer out.Close()
			out.Make(func() any { return g.Encoder.Event(e) })
			out.Later()
			continue
		}
		if err == nil {
			err = g.growth.add(e, g.Kept)
		}
		if failed = err; failed != nil {
			break
		}
		if w, ok := e.What.(tts.Text); !ok || w.Text != "" || len(w.Tokens) > 0 {
			out.Make(func() any { return g.Encoder.Event(e) })
		}
		if _, ended := e.What.(tts.End); ended {
			open--
		}
		if !e.More && open > 0 { // else more follows at once
			out.Flush()
		}
		if out.Failed() {
			return context.Canceled
		}
	}
	var fault *api.Fault
	if g.ended = failed == nil; !g.ended {
		fault = toFault(failed)
	}
	out.End(func() any { return g.Encoder.End(g.account.Usage, fault) })
	return failed
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
