package server

import (
	"net/http"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// completions is POST /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request, f fields) error {
	g, err := s.completionRequest(f, r.Header)
	if err != nil {
		return err
	}
	s.trace(r, g)
	return s.generate(w, r, g)
}

// completionRequest checks a text completion request.
func (s *Server) completionRequest(f fields, header http.Header) (*generation, error) {
	g, err := s.beginGenerator(f)
	if err != nil {
		return nil, err
	}
	var req tts.Request
	prompts := f.prompts(s.opt.MaxChoices, g.model.Model)
	tempered := f.Has("temperature")
	f.sampling(&req, g.model.Model, s.opt.MaxChoices)
	if len(prompts)*req.N > s.opt.MaxChoices {
		f.Fail(jsonread.CodeValue, "n", "%d prompts with %d choices each are more than the %d choices allowed.", len(prompts), req.N, s.opt.MaxChoices)
	}
	req.Sampling.MaxTokens = 16 // OpenAI's default
	f.tokenLimit(&req, 0, "max_tokens", "max_completion_tokens")
	f.Bool("echo", &req.Echo)
	special := true
	f.Bool("add_special_tokens", &special)
	req.Sampling.Logprobs = f.Int("logprobs", &req.Sampling.TopLogprobs, 0, maxTopLogprobs)
	req.MaxLogprobs = maxLogprobs / max(len(prompts), 1)
	s.bestOf(f, g, &req)
	s.scale(f, header, g, &req, tempered)
	f.responseFormat()
	f.bookkeeping()
	stream, usage := f.streaming()
	g.stream = stream
	if err := s.finish(f); err != nil {
		return nil, err
	}
	for _, p := range prompts {
		r := req
		r.Prompt = p
		r.Prompt.Bare = !special
		g.requests = append(g.requests, &r)
	}
	g.report.of(len(prompts), req.N)
	g.shape = newTextShape(g.name, g.choices(), req.Sampling.Logprobs, usage, g.report)
	return g, nil
}
