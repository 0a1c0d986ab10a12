// Package responses is the JSON of OpenAI's Responses API: fields to a tts.Request,
// events to responses and theirs, and a bounded store of what was said.
package responses

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
)

// The bounds of what is kept for requests that follow or refer to responses.
const (
	storedBytes = 64 << 20
	storedTime  = 24 * time.Hour // after they were last used
)

// Protocol returns the API, with a store of its own.
func Protocol() api.Protocol {
	s := newStore(storedBytes, storedTime)
	return api.Protocol{
		Stored: s.Bytes,
		Routes: []api.Route{
			{Path: "/v1/responses", Factor: api.ChatFactor, Ask: s.create},
			{Path: "/v1/responses/input_tokens", Factor: api.TemplateFactor, Answer: s.countInput},
			{Path: "/v1/responses/compact", Factor: api.ChatFactor, Ask: s.compact},
			{Path: "/v1/responses/{id}", Answer: s.response},
			{Method: http.MethodDelete, Path: "/v1/responses/{id}", Answer: s.delete},
			{Method: http.MethodPost, Path: "/v1/responses/{id}/cancel", Answer: s.cancel},
			{Path: "/v1/responses/{id}/input_items", Answer: s.inputItems},
		},
	}
}

// create reads POST /v1/responses.
func (s *Store) create(c *api.Call) (*api.Ask, error) {
	a, err := fields.Generator(c)
	if err != nil {
		return nil, err
	}
	f, stored, req := c.Body, s.of(c.Key.Owner()), &tts.Request{}
	calling, settings, named := readCreate(f, req, a.Model.Model, stored)
	a.Model.Switch(&req.Prompt)
	f.Bool("stream", &a.Stream)
	o := fields.Reader{Fields: c.Body}
	report := o.Scale(c, a, req, named)
	o.Bookkeeping()
	e := newEncoder(a.Name, req, settings, stored)
	e.report = report
	if settings.leftOut {
		c.W.Header().Add(api.Warning, "web_search is left out of the tools: this server searches nothing")
	}
	a.Requests, a.Filters, a.Encoder, a.Kept = []*tts.Request{req}, append(a.Filters, a.Model.Model.Apart(calling, req.N)...), e, true
	if a.Stream && settings.Store {
		a.Begin = func(cancel context.CancelCauseFunc) func() { return stored.Begin(e.response.ID, cancel) }
	}
	return a, finish(c, settings)
}

// finish returns the first fault of a request, or takes the memory of the responses that it
// follows.
func finish(c *api.Call, s *settings) error {
	if err := fields.Finish(c); err != nil {
		return err
	}
	return c.Lease.Grow(int64(s.Earlier))
}

// countInput answers POST /v1/responses/input_tokens.
func (s *Store) countInput(c *api.Call) error {
	a, err := c.Model()
	if err != nil {
		return err
	}
	var req tts.Request
	settings := readCount(c.Body, &req, a.Model.Model, s.of(c.Key.Owner()))
	a.Model.Switch(&req.Prompt)
	if err := finish(c, settings); err != nil {
		return err
	}
	n, err := a.Counter(c.Context())(&req.Prompt)
	if err != nil {
		return err
	}
	return c.JSON(struct {
		Object string `json:"object"`
		Tokens int    `json:"input_tokens"`
	}{"response.input_tokens", n})
}

// compact reads POST /v1/responses/compact.
func (s *Store) compact(c *api.Call) (*api.Ask, error) {
	a, err := c.Generator()
	if err != nil {
		return nil, err
	}
	req := &tts.Request{}
	e, settings := readCompact(c.Body, req, a.Model.Model, s.of(c.Key.Owner()))
	a.Model.Switch(&req.Prompt)
	a.Requests, a.Filters, a.Encoder, a.Kept = []*tts.Request{req}, a.Model.Model.Apart(nil, req.N), e, true
	return a, finish(c, settings)
}

// response answers GET /v1/responses/{id}: the response, or its events once more.
func (s *Store) response(c *api.Call) error {
	q := query{c.URL.Query()}
	stream, err := q.truth("stream")
	if err != nil {
		return err
	}
	after, err := q.number("starting_after", -1, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	if !stream && after >= 0 {
		return api.Invalid(jsonread.CodeValue, "starting_after", "Invalid 'starting_after': it is only allowed when 'stream' is true.")
	}
	r := s.of(c.Key.Owner()).find(id(c))
	switch {
	case r == nil:
		return missing(c)
	case !stream:
		return c.Reply(func(p *jsonwrite.Reply) { p.Value(&r.response) })
	}
	out := jsonwrite.OpenEvents(c.W, false, c.WriteTimeout, c.KeepAlive, func() any { return nil }, func() {})
	defer out.Close()
	for e := range r.events {
		if e.Data.(event).Number <= after {
			continue
		}
		if out.Add(e); out.Failed() {
			return context.Canceled
		}
	}
	out.End(func() any { return nil })
	return nil
}

// inputItems answers GET /v1/responses/{id}/input_items.
func (s *Store) inputItems(c *api.Call) error {
	q := query{c.URL.Query()}
	limit, err := q.number("limit", 20, 1, 100)
	if err != nil {
		return err
	}
	order := q.Get("order")
	if order != "" && order != "asc" && order != "desc" {
		return api.Invalid(jsonread.CodeValue, "order", "Invalid 'order': expected asc or desc, but got '%s'.", jsonread.Brief(order))
	}
	r := s.of(c.Key.Owner()).find(id(c))
	if r == nil {
		return missing(c)
	}
	list, ok := page(r.input, q.Get("after"), limit, order != "asc")
	if !ok {
		return api.Invalid(jsonread.CodeValue, "after", "Invalid 'after': the response has no input item '%s'.", jsonread.Brief(q.Get("after")))
	}
	return c.Reply(func(p *jsonwrite.Reply) { p.Value(list) })
}

// cancel answers POST /v1/responses/{id}/cancel.
func (s *Store) cancel(c *api.Call) error {
	ended, err := s.of(c.Key.Owner()).Cancel(c.Context(), id(c))
	if err != nil {
		return err
	}
	r := s.of(c.Key.Owner()).find(id(c))
	switch {
	case r == nil:
		return missing(c)
	case !ended:
		return api.Invalid(jsonread.CodeValue, "response_id", "The response has ended, and cannot be cancelled any more.")
	}
	return c.Reply(func(p *jsonwrite.Reply) { p.Value(&r.response) })
}

// delete answers DELETE /v1/responses/{id}.
func (s *Store) delete(c *api.Call) error {
	if !s.of(c.Key.Owner()).Delete(id(c)) {
		return missing(c)
	}
	return c.JSON(struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{id(c), "response", true})
}

// id returns the id of the response in a path.
func id(c *api.Call) string { return chi.URLParamFromCtx(c.Context(), "id") }

func missing(c *api.Call) error {
	return api.InvalidStatus(http.StatusNotFound, "not_found", "response_id", "There is no response '"+jsonread.Brief(id(c))+"': it was not stored, or is no longer kept.")
}

// query holds the query of a request.
type query struct{ url.Values }

// number reads an integer in [lo, hi]; standard where there is none.
func (q query) number(name string, standard, lo, hi int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return standard, nil
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < lo || v > hi {
		return 0, api.Invalid(jsonread.CodeValue, name, "Invalid '%s': expected an integer between %d and %d, but got '%s'.", name, lo, hi, jsonread.Brief(text))
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
		return false, api.Invalid(jsonread.CodeValue, name, "Invalid '%s': expected true or false, but got '%s'.", name, jsonread.Brief(text))
	}
}
