package server

import (
	"encoding/json"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/server/responses"
	"github.com/lutra-lm/lutra/tts"
)

// storedResponses is how many bytes of responses are kept for requests that follow.
const storedResponses = 64 << 20

// createResponse is POST /v1/responses.
func (s *Server) createResponse(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	g, err := s.beginGenerator(body)
	if err != nil {
		return err
	}
	owner := recordOf(r.Context()).key.Owner()
	f := responses.Fields{Fields: body}
	req := &tts.Request{}
	hasTemperature := body.Has("temperature")
	calling, settings := f.Create(req, g.model.Model, func(id string) ([]template.Message, bool) { return s.responses.Said(owner, id) })
	g.model.Switch(&req.Prompt)
	o := openai.Fields{Fields: body}
	g.calling, g.thinking, g.requests = calling, true, []*tts.Request{req}
	body.Bool("stream", &g.stream)
	s.scale(o, r.Header, g, req, hasTemperature)
	o.Bookkeeping()
	if err := s.finish(body); err != nil {
		return err
	}
	g.report.Expect(1, req.N)
	var keep func(string, []template.Message, json.RawMessage)
	if settings.Store {
		keep = func(id string, said []template.Message, response json.RawMessage) {
			s.responses.Put(owner, id, said, response)
		}
	}
	g.shape = responses.NewShape(g.name, req, settings, keep)
	s.trace(r, g)
	return s.generate(w, r, g)
}

// response is GET /v1/responses/{id}.
func (s *Server) response(w http.ResponseWriter, r *http.Request) error {
	raw, ok := s.responses.Get(recordOf(r.Context()).key.Owner(), chi.URLParam(r, "*"))
	if !ok {
		return noResponse(r)
	}
	writeJSON(w, http.StatusOK, raw)
	return nil
}

// deleteResponse is DELETE /v1/responses/{id}.
func (s *Server) deleteResponse(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "*")
	if !s.responses.Delete(recordOf(r.Context()).key.Owner(), id) {
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
		Message: "There is no response '" + jsonread.Brief([]byte(chi.URLParam(r, "*"))) + "': it was not stored, or is no longer kept."}
}
