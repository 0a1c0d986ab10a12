package server

import (
	"context"
	"iter"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
)

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
