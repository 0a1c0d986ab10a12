package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/ollama"
)

// ollamaEmbed is POST /api/embed.
func (s *Server) ollamaEmbed(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	m, err := s.embedder(body)
	if err != nil {
		return err
	}
	req := ollama.Fields{Fields: body}.Embed(m.Embed.Width())
	if err := s.finish(body); err != nil {
		return err
	}
	rec := recordOf(r.Context())
	load := time.Since(rec.Start) // until the model is there for the request
	vectors, err := s.embed(r, m, req, "input")
	if err != nil {
		return err
	}
	s.reply(r.Context(), w, func(p *jsonwrite.Reply) {
		p.Raw(`{"model":`)
		p.Text(m.Name)
		p.Raw(`,"embeddings":`)
		p.List(len(vectors), func(i int) { writeVector(p, vectors[i]) })
		p.Raw(fmt.Sprintf(`,"total_duration":%d,"load_duration":%d,"prompt_eval_count":%d}`, time.Since(rec.Start), load, rec.Usage.Prompt))
	})
	return nil
}

// ollamaEmbeddings is POST /api/embeddings, of older clients.
func (s *Server) ollamaEmbeddings(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	m, err := s.embedder(body)
	if err != nil {
		return err
	}
	req := ollama.Fields{Fields: body}.EmbedPrompt()
	if err := s.finish(body); err != nil {
		return err
	}
	vectors, err := s.embed(r, m, req, "prompt")
	if err != nil {
		return err
	}
	s.reply(r.Context(), w, func(p *jsonwrite.Reply) {
		p.Raw(`{"embedding":`)
		if len(vectors) == 0 {
			p.Raw("[]")
		} else {
			writeVector(p, vectors[0])
		}
		p.Raw("}")
	})
	return nil
}
