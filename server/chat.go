package server

import (
	"net/http"
	"strings"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/ollama"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
)

// chat is POST /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	g, err := s.chatRequest(openai.Fields{Fields: body}, r.Header)
	if err != nil {
		return err
	}
	s.trace(r, g)
	if err := s.beginReceipt(r, g, body.Source()); err != nil {
		return err
	}
	return s.generate(w, r, g)
}

// chatRequest checks a chat request.
func (s *Server) chatRequest(f openai.Fields, header http.Header) (*generation, error) {
	g, err := s.beginGenerator(f.Fields)
	if err != nil {
		return nil, err
	}
	req := &tts.Request{}
	req.Prompt, req.MaxThinking = f.Conversation()
	g.model.Switch(&req.Prompt)
	hasTemperature := f.Has("temperature")
	f.Sampling(req, g.model.Model, s.opt.MaxChoices)
	f.TokenLimit(req, 1, "max_completion_tokens", "max_tokens")
	f.Bool("logprobs", &req.Sampling.Logprobs)
	if f.Int("top_logprobs", &req.Sampling.TopLogprobs, 0, openai.MaxTopLogprobs) && !req.Sampling.Logprobs {
		f.Fail(jsonread.CodeValue, "top_logprobs", "it is only allowed when 'logprobs' is true.")
	}
	req.MaxLogprobs = openai.MaxLogprobs
	g.thinking = f.ReasoningFormat(s.opt.ReasoningFormat)
	reasoning := true
	f.Bool("include_reasoning", &reasoning)
	g.hidden = !reasoning
	g.calling = f.ToolChoice(req, g.model.Model)
	f.Format(req, g.model.Model)
	if last := len(req.Prompt.Messages) - 1; f.Echoes() && req.Prompt.Ending == tts.EndOpen {
		g.echo, _ = req.Prompt.Messages[last].Content.(string)
	}
	f.Modalities()
	s.scale(f, header, g, req, hasTemperature)
	f.Bookkeeping()
	g.stream, g.usage = f.Streaming()
	g.receipt.wanted, g.receipt.hashes = f.Receipt()
	g.requests = []*tts.Request{req}
	g.report.Expect(1, req.N)
	g.shape = openai.NewChatShape(g.name, g.model.Fingerprint, req.Sampling.Logprobs, g.usage, g.calling != nil, g.report, g.finalReceipt)
	return g, s.finish(f.Fields)
}

// begin reads the model of a request.
func (s *Server) begin(f *jsonread.Fields) (*generation, error) {
	g := &generation{}
	f.String("model", &g.name)
	if f.Err != nil {
		return nil, f.Err
	}
	models, err := s.registered()
	if err != nil {
		return nil, err
	}
	if g.model, g.preset, err = models.Find(g.name); err != nil {
		short, tagged := strings.CutSuffix(g.name, ollama.Tag)
		if !tagged {
			return nil, err
		}
		if g.model, g.preset, err = models.Find(short); err != nil {
			return nil, err
		}
	}
	if g.name == "" {
		g.name = g.model.Name
	}
	return g, nil
}

// beginGenerator is begin for requests that want text written.
func (s *Server) beginGenerator(f *jsonread.Fields) (*generation, error) {
	g, err := s.begin(f)
	if err == nil && g.model.Rank != nil {
		return nil, invalid(jsonread.CodeValue, "model", "The model '%s' writes no text. Send what it is to read to /v1/embeddings, /v1/rerank or /v1/score.", jsonread.Brief([]byte(g.name)))
	}
	if err == nil && g.model.Reward != nil {
		return nil, invalid(jsonread.CodeValue, "model", "The model '%s' judges answers and writes none. Send them to /v1/rewards.", jsonread.Brief([]byte(g.name)))
	}
	return g, err
}
