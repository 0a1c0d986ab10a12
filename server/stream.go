package server

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/responses"
	"github.com/lutra-lm/lutra/tts"
)

// failer is a shape with events of its own for a stream that does not end well. Others
// write the error as their API writes all errors.
type failer interface {
	Fail(status int, message string, usage tts.Usage) any
	Cancel(usage tts.Usage) any // at its client's wish
}

// stream writes deltas as they come. The first says that the request has been
// accepted; errors before it have a status of their own.
func (s *Server) stream(w http.ResponseWriter, g *generation, deltas iter.Seq2[tts.Delta, error], rec *record, cancel func()) error {
	var out *jsonwrite.Events
	var ends []tts.Delta
	open := g.choices()
	add := func(d tts.Delta) { out.Make(func() any { return g.shape.Chunk(d) }) }
	_, keeps := g.shape.(keeper)
	growth := growth{lease: rec.lease, token: g.receipt.perToken()}
	for d, err := range deltas {
		if err != nil && out == nil {
			return err
		}
		if out == nil {
			out = jsonwrite.OpenEvents(w, g.shape.Lines(), s.opt.WriteTimeout, s.opt.KeepAlive, g.shape.KeepAlive, cancel)
			defer out.Close()
			for i := range g.choices() {
				out.Make(func() any { return g.shape.Begin(i) })
			}
			out.Later()
			continue // there is nothing in it
		}
		if err == nil {
			err = growth.add(&d, keeps)
		}
		if err != nil {
			rec.err = err
			break
		}
		if d.Reasoning != "" {
			add(tts.Delta{Choice: d.Choice, Reasoning: d.Reasoning})
		}
		if d.Text != "" || len(d.Tokens) > 0 {
			add(tts.Delta{Choice: d.Choice, Text: d.Text, Tokens: d.Tokens})
		}
		if d.Calls != nil {
			add(tts.Delta{Choice: d.Choice, Calls: d.Calls})
		}
		if g.report.Update(&d) {
			out.Make(g.shape.KeepAlive)
		}
		switch {
		case d.Finish == "":
		case g.search == nil:
			open--
			add(tts.Delta{Choice: d.Choice, Finish: d.Finish, Stop: d.Stop, Timing: d.Timing})
		default: // until the search has reported all choices
			ends = append(ends, tts.Delta{Choice: d.Choice, Finish: d.Finish, Stop: d.Stop, Timing: d.Timing})
		}
		if !d.More && open > 0 { // else more follows at once
			out.Flush()
		}
		if out.Failed() {
			rec.err = context.Canceled
			return nil
		}
	}
	end := func() any { return g.failed(rec) }
	if rec.err == nil {
		for _, d := range ends {
			add(d)
		}
		end = func() any { return g.shape.End(rec.Usage) }
	}
	out.End(end, g.shape.Done)
	return nil
}

// failed is what a stream ends with because of rec's error.
func (g *generation) failed(rec *record) any {
	e := toAPI(rec.err)
	f, own := g.shape.(failer)
	switch {
	case !own:
		return rec.failure(e)
	case errors.Is(rec.err, responses.ErrCancelled):
		return f.Cancel(rec.Usage)
	}
	return f.Fail(e.Status, e.Message, rec.Usage)
}
