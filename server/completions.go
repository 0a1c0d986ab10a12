package server

import (
	"net/http"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
)

// completions is POST /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	g, err := s.completionRequest(openai.Fields{Fields: body}, r.Header)
	if err != nil {
		return err
	}
	s.trace(r, g)
	if err := s.beginReceipt(r, g, body.Source()); err != nil {
		return err
	}
	return s.generate(w, r, g)
}

// completionRequest checks a text completion request.
func (s *Server) completionRequest(f openai.Fields, header http.Header) (*generation, error) {
	g, err := s.beginGenerator(f.Fields)
	if err != nil {
		return nil, err
	}
	if g.model.Thinking != nil {
		return nil, invalid(jsonread.CodeValue, "model", "The name '%s' switches thinking, which belongs to conversations. Send them to /v1/chat/completions.", jsonread.Brief([]byte(g.name)))
	}
	var req tts.Request
	prompts := f.Prompts(s.opt.MaxChoices, g.model.Model)
	f.Candidates(&req, g.model.Model, s.opt.MaxChoices)
	if req.Continued != nil && len(prompts) > 1 {
		f.Fail(jsonread.CodeValue, "prompt", "candidates share one prompt, but there are %d.", len(prompts))
	}
	infill := f.Suffix(g.model.Model)
	hasTemperature := f.Has("temperature")
	f.Sampling(&req, g.model.Model, s.opt.MaxChoices)
	if req.Continued != nil {
		req.N = len(req.Continued)
	}
	if len(prompts)*req.N > s.opt.MaxChoices {
		f.Fail(jsonread.CodeValue, "n", "%d prompts with %d choices each are more than the %d choices allowed.", len(prompts), req.N, s.opt.MaxChoices)
	}
	req.Sampling.MaxTokens = 16 // OpenAI's default
	f.TokenLimit(&req, 0, "max_tokens", "max_completion_tokens")
	f.Bool("echo", &req.Echo)
	special := true
	f.Bool("add_special_tokens", &special)
	req.Sampling.Logprobs = f.Int("logprobs", &req.Sampling.TopLogprobs, 0, openai.MaxTopLogprobs)
	listed := req.Sampling.Logprobs
	var ids bool
	f.Bool("return_tokens", &ids)
	req.Sampling.Logprobs = listed || ids // tokens come with both
	req.MaxLogprobs = openai.MaxLogprobs / max(len(prompts), 1)
	s.bestOf(f, g, &req)
	f.Format(&req, g.model.Model)
	s.scale(f, header, g, &req, hasTemperature)
	f.Bookkeeping()
	g.stream, g.usage = f.Streaming()
	g.receipt.wanted, g.receipt.hashes = f.Receipt()
	if err := s.finish(f.Fields); err != nil {
		return nil, err
	}
	for _, p := range prompts {
		r := req
		r.Prompt = p
		r.Prompt.Bare = !special
		if infill != nil && r.Prompt.Tokens == nil {
			r.Prompt.Infill = infill
		}
		g.requests = append(g.requests, &r)
	}
	g.report.Expect(len(prompts), req.N)
	g.shape = openai.NewTextShape(g.name, g.model.Fingerprint, g.choices(), openai.Columns{Logprobs: listed, Tokens: ids}, g.usage, g.report, g.finalReceipt)
	return g, nil
}
