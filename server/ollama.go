package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/ollama"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
)

// ollamaChat is POST /api/chat.
func (s *Server) ollamaChat(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	return s.ollamaAnswer(w, r, body, true)
}

// ollamaGenerate is POST /api/generate.
func (s *Server) ollamaGenerate(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	return s.ollamaAnswer(w, r, body, false)
}

func (s *Server) ollamaAnswer(w http.ResponseWriter, r *http.Request, body *jsonread.Fields, chat bool) error {
	g, err := s.beginGenerator(body)
	if err != nil {
		return err
	}
	f := ollama.Fields{Fields: body}
	req := &tts.Request{}
	if chat {
		g.calling = f.Chat(req, g.model.Model)
	} else {
		f.Generate(req, g.model.Model)
	}
	g.model.Switch(&req.Prompt)
	shape := ollama.NewShape(g.name, chat, req.Sampling.Logprobs)
	g.thinking, g.stream, g.requests, g.shape = true, f.Streaming(), []*tts.Request{req}, shape
	empty := req.Prompt.Messages == nil && req.Prompt.Text == ""
	if !empty {
		s.scale(openai.Fields{Fields: body}, r.Header, g, req, true)
		g.report.Expect(1, req.N)
	}
	if err := s.finish(body); err != nil {
		return err
	}
	if empty { // models are loaded so; here they are
		writeJSON(w, http.StatusOK, shape.Loaded())
		return nil
	}
	if !chat && req.Prompt.Messages != nil {
		shape.Conversation = g.conversation(r.Context(), req)
	}
	s.trace(r, g)
	return s.generate(w, r, g)
}

// conversation gives the tokens of a request's prompt and of an answer to it: those that
// the model would read for both.
func (g *generation) conversation(ctx context.Context, req *tts.Request) func(text, reasoning string) []int32 {
	p := req.Prompt
	return func(text, reasoning string) []int32 {
		p.Messages = append(slices.Clone(p.Messages), template.Message{Role: "assistant", Content: text, ReasoningContent: reasoning})
		p.Ending = tts.EndClosed
		prepared, err := prepareAside(ctx, g.model.Model, &p)
		if err != nil || recordOf(ctx).lease.Grow(perID*int64(len(prepared.Tokens))) != nil {
			return nil // the answer stands without
		}
		return prepared.Tokens
	}
}

// perID is how many bytes are held for a token id of an answer: itself, and as text.
const perID = 16

// ollamaTags lists the models, ollamaRunning those that are loaded: all of them.
func (s *Server) ollamaTags(w http.ResponseWriter, _ *http.Request) error {
	return s.ollamaList(w, false)
}
func (s *Server) ollamaRunning(w http.ResponseWriter, _ *http.Request) error {
	return s.ollamaList(w, true)
}

func (s *Server) ollamaList(w http.ResponseWriter, loaded bool) error {
	models, err := s.registered()
	if err != nil {
		return err
	}
	list := []ollama.Card{}
	for _, card := range models.Cards() {
		m, _, err := models.Find(card.ID)
		if err == nil && m.Reward == nil && (!loaded || card.ID == m.Name) {
			list = append(list, ollama.NewCard(card.ID, m.Model, time.Unix(card.Created, 0), loaded))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"models": list})
	return nil
}

// ollamaShow is POST /api/show.
func (s *Server) ollamaShow(w http.ResponseWriter, _ *http.Request, body *jsonread.Fields) error {
	if former, ok := body.Take("name"); ok && !body.Has("model") {
		body.Put("model", former)
	}
	g, err := s.begin(body)
	if err != nil {
		return err
	}
	body.Ignore("verbose")
	if err := s.finish(body); err != nil {
		return err
	}
	models, err := s.registered()
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, ollama.NewShown(g.model.Model, g.model.Embed != nil, time.Unix(models.Card(g.name, g.model).Created, 0)))
	return nil
}

func ollamaVersion(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]string{"version": ollama.Version})
	return nil
}

// ollamaRefused answers what would change the server's models.
func ollamaRefused(_ http.ResponseWriter, r *http.Request) error {
	return &apiError{Status: http.StatusNotImplemented, Type: typeInvalid, Code: jsonread.CodeUnsupported,
		Message: "This server's models are configured when it starts: it does not do " + strings.TrimPrefix(r.URL.Path, "/api/") + "."}
}
