package openai

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
)

// embeddings reads POST /v1/embeddings.
func embeddings(c *api.Call) (*api.Reading, error) {
	m, err := Embedder(c)
	if err != nil {
		return nil, err
	}
	req, coded := Fields{c.Body}.embeddings(m.Model, m.Embed.Width())
	r, vectors := Embed(m, req, "input")
	r.Write = func(p *jsonwrite.Reply, read int) {
		list := embeddingList{Object: "list", Data: []int{}, Model: m.Name, Usage: ReadUsage{read, read}}
		p.Filled(list, "data", len(*vectors), func(i int) {
			p.Raw(fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":`, i))
			if vector := (*vectors)[i]; coded {
				p.Raw(`"` + littleEndian(vector) + `"`)
			} else {
				p.Floats(vector)
			}
			p.Raw("}")
		})
	}
	return r, Finish(c)
}

// embeddingList is the answer to a request for vectors, but for them.
type embeddingList struct {
	Object string    `json:"object"`
	Data   []int     `json:"data"`
	Model  string    `json:"model"`
	Usage  ReadUsage `json:"usage"`
}

// ReadUsage is the usage of a request whose tokens are all read.
type ReadUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

// littleEndian returns a vector's float32s in base64.
func littleEndian(vector []float32) string {
	raw := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

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

// embeddings reads a request for vectors of a model whose own have width elements.
// The second result tells whether they are written in base64.
func (f Fields) embeddings(m *tts.Model, width int) (*embed.Request, bool) {
	r := &embed.Request{}
	raw, ok := f.Take("input")
	if !ok {
		f.Fail(jsonread.CodeMissing, "input", "an input is required.")
		return r, false
	}
	r.Texts = f.prompts("input", raw, MaxInputs, m)
	for i, p := range r.Texts {
		if p.Tokens != nil || p.Text != "" {
			continue // a model may read special tokens even where there is no text
		}
		name := "input"
		if jsonread.Kind(raw) == "a list" {
			name = fmt.Sprintf("input[%d]", i)
		}
		f.Fail(jsonread.CodeValue, name, "it is empty.")
	}
	f.Int("dimensions", &r.Dimensions, 1, width)
	format := "float"
	f.OneOf("encoding_format", jsonread.CodeValue, &format, "float", "base64")
	f.Bookkeeping()
	return r, format == "base64"
}
