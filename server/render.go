package server

import (
	"context"
	"net/http"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
)

// renderChat is vLLM's POST /v1/chat/completions/render: the token ids that the request
// would begin with, and how it would be sampled. What /v1/chat/completions refuses before
// it computes anything is refused here alike.
func (s *Server) renderChat(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	f := openai.Fields{Fields: body}
	seeded := f.Has("seed")
	g, err := s.chatRequest(f, r.Header)
	if err != nil {
		return err
	}
	rendered, err := g.render(r.Context(), seeded)
	if err != nil {
		return err
	}
	s.reply(r.Context(), w, func(p *jsonwrite.Reply) { rendered[0].Write(p, "chatcmpl-", g.name, g.stream, g.usage) })
	return nil
}

// renderCompletion is vLLM's POST /v1/completions/render: a list of what renderChat
// answers, one a prompt.
func (s *Server) renderCompletion(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	f := openai.Fields{Fields: body}
	seeded := f.Has("seed")
	g, err := s.completionRequest(f, r.Header)
	if err != nil {
		return err
	}
	rendered, err := g.render(r.Context(), seeded)
	if err != nil {
		return err
	}
	s.reply(r.Context(), w, func(p *jsonwrite.Reply) {
		p.List(len(rendered), func(i int) { rendered[i].Write(p, "cmpl-", g.name, g.stream, g.usage) })
	})
	return nil
}

// render prepares the prompts of g as work beside the engines. seeded tells that the
// request names its seed.
func (g *generation) render(ctx context.Context, seeded bool) ([]openai.Rendered, error) {
	ctx, leave, err := cpulimit.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var strategy tts.Strategy = tts.Single{Model: g.model.Model}
	if g.search != nil {
		strategy = g.search
	}
	rendered := make([]openai.Rendered, len(g.requests))
	for i, req := range g.requests {
		prepared, err := strategy.Prepare(ctx, req)
		if err != nil {
			return nil, err
		}
		rendered[i] = openai.NewRendered(req, prepared, g.model.Context, seeded)
	}
	return rendered, nil
}
