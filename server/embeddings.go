package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
)

// embeddings is POST /v1/embeddings.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	m, err := s.embedder(body)
	if err != nil {
		return err
	}
	req, coded := openai.Fields{Fields: body}.Embeddings(m.Model, m.Embed.Width())
	if err := s.finish(body); err != nil {
		return err
	}
	vectors, err := s.embed(r, m, req, "input")
	if err != nil {
		return err
	}
	read := recordOf(r.Context()).Usage.Prompt
	s.reply(r.Context(), w, func(p *jsonwrite.Reply) {
		list := embeddingList{Object: "list", Data: []int{}, Model: m.Name, Usage: readUsage{read, read}}
		p.Around(list, `"data":[]`, func() {
			p.Raw(`"data":`)
			p.List(len(vectors), func(i int) {
				p.Raw(fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":`, i))
				if coded {
					p.Raw(`"` + littleEndian(vectors[i]) + `"`)
				} else {
					writeVector(p, vectors[i])
				}
				p.Raw("}")
			})
		})
	})
	return nil
}

// embeddingList is the answer to a request for vectors, but for them.
type embeddingList struct {
	Object string    `json:"object"`
	Data   []int     `json:"data"`
	Model  string    `json:"model"`
	Usage  readUsage `json:"usage"`
}

// readUsage has no completion: all tokens are read.
type readUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

// littleEndian is a vector's float32s in base64.
func littleEndian(vector []float32) string {
	raw := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func writeVector(p *jsonwrite.Reply, vector []float32) {
	p.List(len(vector), func(i int) { p.Float(vector[i]) })
}

// embedder finds the model that a request for vectors asks for: by default, the first.
func (s *Server) embedder(f *jsonread.Fields) (*registry.Model, error) {
	m, err := s.reader(f, (*registry.Registry).Embedder)
	if err == nil && m.Embed == nil && m.Rank != nil {
		return nil, invalid(jsonread.CodeValue, "model", "The model '%s' makes no vectors: it ranks documents, at /v1/rerank and /v1/score.", jsonread.Brief([]byte(m.Name)))
	}
	if err == nil && m.Embed == nil {
		return nil, invalid(jsonread.CodeValue, "model", "The model '%s' makes no vectors: its file names no pooling of the tokens.", jsonread.Brief([]byte(m.Name)))
	}
	return m, err
}

// embed makes the vectors that a request wants of the texts in a field.
func (s *Server) embed(r *http.Request, m *registry.Model, req *embed.Request, field string) (vectors [][]float32, err error) {
	width := int64(m.Embed.Width())
	err = s.read(r, m, "embed", len(req.Texts), width, func(ctx context.Context) (int, error) {
		var n int
		vectors, n, err = m.Embed.Embed(ctx, req)
		return n, err
	}, func(e *embed.TextError) string {
		if len(req.Texts) == 1 {
			return field
		}
		return fmt.Sprintf("%s[%d]", field, e.Index)
	})
	return vectors, err
}

// perText is how many bytes a text holds beside itself, its tokens and its vector.
const perText = 1 << 10

// read has a model read n texts, which give so many numbers each, and keeps account of it.
// name gives the field of a text that is at fault.
func (s *Server) read(r *http.Request, m *registry.Model, task string, n int, width int64, read func(context.Context) (int, error), name func(*embed.TextError) string) error {
	ctx, rec := r.Context(), recordOf(r.Context())
	rec.Model, rec.strategy, rec.N = m.Name, task, n
	if err := rec.lease.Grow(int64(n) * (perText + 16*width)); err != nil {
		return err
	}
	spent, err := read(ctx)
	rec.Usage.Prompt = spent
	rec.key.Spend(time.Now(), spent)
	if err == nil {
		rec.Finish = tts.FinishStop
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var fault *embed.TextError
	var long *tts.ContextError
	switch {
	case !errors.As(err, &fault):
	case errors.As(err, &long):
		return invalid(codeContext, name(fault), "This model's maximum context length is %d tokens. However, '%s' has at least %d tokens. Please shorten it.", long.Limit, name(fault), long.Prompt)
	case errors.Is(err, tts.ErrEmpty):
		return invalid(jsonread.CodeValue, name(fault), "Invalid '%s': it is empty.", name(fault))
	}
	return err
}
