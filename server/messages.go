package server

import (
	"net/http"

	"github.com/lutra-lm/lutra/server/anthropic"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
)

// messages is POST /v1/messages, of Anthropic's API.
func (s *Server) messages(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	g, err := s.beginGenerator(body)
	if err != nil {
		return err
	}
	f := anthropic.Fields{Fields: body}
	req := &tts.Request{}
	hasTemperature := f.Has("temperature")
	g.calling = f.Message(req, g.model.Model)
	g.model.Switch(&req.Prompt)
	g.thinking = true
	s.scale(openai.Fields{Fields: body}, r.Header, g, req, hasTemperature)
	g.stream, g.requests, g.shape = f.Streaming(), []*tts.Request{req}, anthropic.NewShape(g.name)
	g.report.Expect(1, req.N)
	if err := s.finish(body); err != nil {
		return err
	}
	s.trace(r, g)
	return s.generate(w, r, g)
}

// countTokens is POST /v1/messages/count_tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	g, err := s.begin(body)
	if err != nil {
		return err
	}
	f := anthropic.Fields{Fields: body}
	var req tts.Request
	f.Prompt(&req)
	g.model.Switch(&req.Prompt)
	f.Ignore("tool_choice", "cache_control", "output_config")
	if err := s.finish(body); err != nil {
		return err
	}
	prepared, err := prepareAside(r.Context(), g.model.Model, &req.Prompt)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]int{"input_tokens": len(prepared.Tokens)})
	return nil
}
