package server

import (
	"net/http"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/llamacpp"
	"github.com/lutra-lm/lutra/tts"
)

// infill is POST /infill, of llama.cpp's API.
func (s *Server) infill(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	g, err := s.beginGenerator(body)
	if err != nil {
		return err
	}
	req := &tts.Request{}
	llamacpp.Fields{Fields: body}.Infill(req, g.model.Model)
	body.Bool("stream", &g.stream)
	if err := s.finish(body); err != nil {
		return err
	}
	g.requests, g.shape = []*tts.Request{req}, llamacpp.NewShape(g.name)
	s.trace(r, g)
	return s.generate(w, r, g)
}
