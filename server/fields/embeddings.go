package fields

import (
	"context"
	"fmt"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts/embed"
)

// Embedder finds the model that a request for vectors asks for: by default, the first.
func Embedder(c *api.Call) (*registry.Model, error) {
	m, err := c.Reader((*registry.Registry).Embedder, registry.TaskEmbed)
	if err == nil && m.Embed == nil && m.Rank != nil {
		return nil, api.Invalid(jsonread.CodeValue, "model", "The model '%s' makes no vectors: it ranks documents, at /v1/rerank and /v1/score.", jsonread.Brief(m.Name))
	}
	if err == nil && m.Embed == nil {
		return nil, api.Invalid(jsonread.CodeValue, "model", "The model '%s' makes no vectors: its file names no pooling of the tokens.", jsonread.Brief(m.Name))
	}
	return m, err
}

// Embed returns a request for the vectors of the texts in a field, and the vectors that there
// are once it has been carried out.
func Embed(m *registry.Model, req *embed.Request, field string) (*api.Reading, *[][]float32) {
	vectors := new([][]float32)
	return &api.Reading{Model: m, Task: "embed", Texts: len(req.Texts), Width: m.Embed.Width(),
		Read: func(ctx context.Context) (n int, err error) {
			*vectors, n, err = m.Embed.Embed(ctx, req)
			return n, err
		},
		Field: func(e *embed.TextError) string {
			if len(req.Texts) == 1 {
				return field
			}
			return fmt.Sprintf("%s[%d]", field, e.Index)
		},
	}, vectors
}
