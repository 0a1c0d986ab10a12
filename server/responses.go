package server

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/server/responses"
	"github.com/lutra-lm/lutra/tts"
)

// The bounds of what is kept for requests that follow or refer to responses.
const (
	storedResponses = 64 << 20       // bytes
	responsesKept   = 24 * time.Hour // after they were last used
)

// stored is what a request's client may see of the responses that are kept.
func (s *Server) stored(r *http.Request) responses.Owned {
	return s.responses.Of(recordOf(r.Context()).key.Owner())
}

// createResponse is POST /v1/responses.
func (s *Server) createResponse(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	g, err := s.beginGenerator(body)
	if err != nil {
		return err
	}
	f, stored := responses.Fields{Fields: body}, s.stored(r)
	req := &tts.Request{}
	hasTemperature := body.Has("temperature")
	calling, settings := f.Create(req, g.model.Model, stored)
	g.model.Switch(&req.Prompt)
	o := openai.Fields{Fields: body}
	g.calling, g.thinking, g.requests = calling, true, []*tts.Request{req}
	body.Bool("stream", &g.stream)
	s.scale(o, r.Header, g, req, hasTemperature)
	o.Bookkeeping()
	if err := s.finish(body); err != nil {
		return err
	}
	if err := recordOf(r.Context()).lease.Grow(int64(settings.Earlier)); err != nil {
		return err
	}
	g.report.Expect(1, req.N)
	shape := responses.NewShape(g.name, req, settings, stored)
	g.shape = shape
	s.trace(r, g)
	if g.stream && settings.Store {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer stored.Begin(shape.ID(), cancel)()
		r = r.WithContext(ctx)
	}
	return s.generate(w, r, g)
}

// countInput is POST /v1/responses/input_tokens.
func (s *Server) countInput(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	g, err := s.begin(body)
	if err != nil {
		return err
	}
	var req tts.Request
	settings := responses.Fields{Fields: body}.Count(&req, g.model.Model, s.stored(r))
	g.model.Switch(&req.Prompt)
	if err := s.finish(body); err != nil {
		return err
	}
	if err := recordOf(r.Context()).lease.Grow(int64(settings.Earlier)); err != nil {
		return err
	}
	prepared, err := prepareAside(r.Context(), g.model.Model, &req.Prompt)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		Object string `json:"object"`
		Tokens int    `json:"input_tokens"`
	}{"response.input_tokens", len(prepared.Tokens)})
	return nil
}

// compact is POST /v1/responses/compact.
func (s *Server) compact(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	g, err := s.beginGenerator(body)
	if err != nil {
		return err
	}
	req := &tts.Request{}
	shape, settings := responses.Fields{Fields: body}.Compact(req, g.model.Model, s.stored(r))
	g.model.Switch(&req.Prompt)
	g.thinking, g.requests, g.shape = true, []*tts.Request{req}, shape
	if err := s.finish(body); err != nil {
		return err
	}
	if err := recordOf(r.Context()).lease.Grow(int64(settings.Earlier)); err != nil {
		return err
	}
	s.trace(r, g)
	return s.generate(w, r, g)
}

// response is GET /v1/responses/{id}: the response, or its events once more.
func (s *Server) response(w http.ResponseWriter, r *http.Request) error {
	q := query{r.URL.Query()}
	stream, err := q.truth("stream")
	if err != nil {
		return err
	}
	after, err := q.number("starting_after", -1, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	if !stream && after >= 0 {
		return invalid(jsonread.CodeValue, "starting_after", "Invalid 'starting_after': it is only allowed when 'stream' is true.")
	}
	id := chi.URLParam(r, "id")
	if !stream {
		found := s.stored(r).Response(id)
		if found == nil {
			return noResponse(r)
		}
		s.reply(r.Context(), w, func(p *jsonwrite.Reply) { p.Value(found) })
		return nil
	}
	events, ok := s.stored(r).Events(id, after)
	if !ok {
		return noResponse(r)
	}
	out := jsonwrite.OpenEvents(w, false, s.opt.WriteTimeout, s.opt.KeepAlive, func() any { return nil }, func() {})
	defer out.Close()
	for e := range events {
		if out.Add(e); out.Failed() {
			recordOf(r.Context()).err = context.Canceled
			return nil
		}
	}
	out.End()
	return nil
}

// inputItems is GET /v1/responses/{id}/input_items.
func (s *Server) inputItems(w http.ResponseWriter, r *http.Request) error {
	q := query{r.URL.Query()}
	limit, err := q.number("limit", 20, 1, 100)
	if err != nil {
		return err
	}
	order := q.Get("order")
	if order != "" && order != "asc" && order != "desc" {
		return invalid(jsonread.CodeValue, "order", "Invalid 'order': expected asc or desc, but got '%s'.", jsonread.Brief([]byte(order)))
	}
	page := responses.Page{After: q.Get("after"), Limit: limit, Descending: order != "asc"}
	list, known, ok := s.stored(r).InputItems(chi.URLParam(r, "id"), page)
	switch {
	case !known:
		return noResponse(r)
	case !ok:
		return invalid(jsonread.CodeValue, "after", "Invalid 'after': the response has no input item '%s'.", jsonread.Brief([]byte(page.After)))
	}
	s.reply(r.Context(), w, func(p *jsonwrite.Reply) { p.Value(list) })
	return nil
}

// cancelResponse is POST /v1/responses/{id}/cancel.
func (s *Server) cancelResponse(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	ended, err := s.stored(r).Cancel(r.Context(), id)
	if err != nil {
		return err
	}
	found := s.stored(r).Response(id)
	switch {
	case found == nil:
		return noResponse(r)
	case !ended:
		return invalid(jsonread.CodeValue, "response_id", "The response has ended, and cannot be cancelled any more.")
	}
	s.reply(r.Context(), w, func(p *jsonwrite.Reply) { p.Value(found) })
	return nil
}

// deleteResponse is DELETE /v1/responses/{id}.
func (s *Server) deleteResponse(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	if !s.stored(r).Delete(id) {
		return noResponse(r)
	}
	writeJSON(w, http.StatusOK, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{id, "response", true})
	return nil
}

func noResponse(r *http.Request) error {
	return &apiError{Status: http.StatusNotFound, Type: typeInvalid, Code: "not_found", Param: "response_id",
		Message: "There is no response '" + jsonread.Brief([]byte(chi.URLParam(r, "id"))) + "': it was not stored, or is no longer kept."}
}

// query is what stands behind the path of a request.
type query struct{ url.Values }

// number reads an integer in [lo, hi]; standard where there is none.
func (q query) number(name string, standard, lo, hi int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return standard, nil
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < lo || v > hi {
		return 0, invalid(jsonread.CodeValue, name, "Invalid '%s': expected an integer between %d and %d, but got '%s'.", name, lo, hi, jsonread.Brief([]byte(text)))
	}
	return v, nil
}

// truth reads true or false, which it is where there is none.
func (q query) truth(name string) (bool, error) {
	switch text := q.Get(name); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, invalid(jsonread.CodeValue, name, "Invalid '%s': expected true or false, but got '%s'.", name, jsonread.Brief([]byte(text)))
	}
}
