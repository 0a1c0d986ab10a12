package server

import (
	"net/http"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// chat is POST /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request, f fields) error {
	g, err := s.chatRequest(f, r.Header)
	if err != nil {
		return err
	}
	s.trace(r, g)
	return s.generate(w, r, g)
}

// chatRequest checks a chat request.
func (s *Server) chatRequest(f fields, header http.Header) (*generation, error) {
	g, err := s.beginGenerator(f)
	if err != nil {
		return nil, err
	}
	req := &tts.Request{Prompt: f.conversation()}
	tempered := f.Has("temperature")
	f.sampling(req, g.model.Model, s.opt.MaxChoices)
	f.tokenLimit(req, 1, "max_completion_tokens", "max_tokens")
	f.Bool("logprobs", &req.Sampling.Logprobs)
	if f.Int("top_logprobs", &req.Sampling.TopLogprobs, 0, maxTopLogprobs) && !req.Sampling.Logprobs {
		f.Fail(jsonread.CodeValue, "top_logprobs", "it is only allowed when 'logprobs' is true.")
	}
	req.MaxLogprobs = maxLogprobs
	g.thinking = f.reasoningFormat(s.opt.ReasoningFormat)
	reasoning := true
	f.Bool("include_reasoning", &reasoning)
	g.hidden = !reasoning
	f.responseFormat()
	f.toolChoice(&req.Prompt)
	if last := len(req.Prompt.Messages) - 1; f.echoes() && req.Prompt.Ending == tts.EndOpen {
		g.echo, _ = req.Prompt.Messages[last].Content.(string)
	}
	f.modalities()
	s.scale(f, header, g, req, tempered)
	f.bookkeeping()
	stream, usage := f.streaming()
	g.stream, g.requests = stream, []*tts.Request{req}
	g.report.of(1, req.N)
	g.shape = newChatShape(g.name, req.Sampling.Logprobs, usage, g.report)
	return g, s.finish(f)
}

// begin reads the model of a request.
func (s *Server) begin(f fields) (*generation, error) {
	g := &generation{}
	f.String("model", &g.name)
	if f.Err != nil {
		return nil, f.Err
	}
	var err error
	if g.model, g.preset, err = s.model(g.name); err != nil {
		return nil, err
	}
	if g.name == "" {
		g.name = g.model.Name
	}
	return g, nil
}

// beginGenerator is begin for requests that want text written.
func (s *Server) beginGenerator(f fields) (*generation, error) {
	g, err := s.begin(f)
	if err == nil && g.model.reward != nil {
		return nil, invalid(jsonread.CodeValue, "model", "The model '%s' judges answers and writes none. Send them to /v1/rewards.", jsonread.Brief([]byte(g.name)))
	}
	return g, err
}
