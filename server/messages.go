package server

import (
	"context"
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
	calling, edits := f.Message(req, g.model.Model)
	g.calling = calling
	g.model.Switch(&req.Prompt)
	g.thinking = true
	s.scale(openai.Fields{Fields: body}, r.Header, g, req, hasTemperature)
	g.stream, g.requests = f.Streaming(), []*tts.Request{req}
	g.report.Expect(1, req.N)
	if err := s.finish(body); err != nil {
		return err
	}
	applied, err := edits.Apply(&req.Prompt, g.countTokens(r.Context()))
	if err != nil {
		return err
	}
	g.shape = anthropic.NewShape(g.name, applied)
	s.trace(r, g)
	return s.generate(w, r, g)
}

// countTokens counts those of prompts.
func (g *generation) countTokens(ctx context.Context) func(*tts.Prompt) (int, error) {
	return func(p *tts.Prompt) (int, error) {
		prepared, err := prepareAside(ctx, g.model.Model, p)
		if err != nil {
			return 0, err
		}
		return len(prepared.Tokens), nil
	}
}

// countTokens is POST /v1/messages/count_tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	g, err := s.begin(body)
	if err != nil {
		return err
	}
	f := anthropic.Fields{Fields: body}
	var req tts.Request
	_, edits := f.Prompt(&req, g.model.Model)
	g.model.Switch(&req.Prompt)
	f.Ignore("tool_choice", "cache_control", "output_config", "speed")
	if err := s.finish(body); err != nil {
		return err
	}
	count := g.countTokens(r.Context())
	applied, err := edits.Apply(&req.Prompt, count)
	if err != nil {
		return err
	}
	n, err := count(&req.Prompt)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, anthropic.NewCount(n, applied))
	return nil
}

// hello is what Claude Code asks for to learn whether a server is there.
func hello(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]string{"message": "hello"})
	return nil
}
