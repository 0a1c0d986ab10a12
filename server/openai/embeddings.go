package openai

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
)

// embeddings reads POST /v1/embeddings.
func embeddings(c *api.Call) (*api.Reading, error) {
	m, err := fields.Embedder(c)
	if err != nil {
		return nil, err
	}
	req, coded := newReader(c).embeddings(m.Model, m.Embed.Width())
	r, vectors := fields.Embed(m, req, "input")
	r.Write = func(p *jsonwrite.Reply, read int) {
		list := embeddingList{Object: "list", Data: []int{}, Model: m.Name, Usage: report.ReadUsage{Prompt: read, Total: read}}
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
	return r, fields.Finish(c)
}

// embeddingList is the answer to a request for vectors, but for them.
type embeddingList struct {
	Object string           `json:"object"`
	Data   []int            `json:"data"`
	Model  string           `json:"model"`
	Usage  report.ReadUsage `json:"usage"`
}

// littleEndian returns a vector's float32s in base64.
func littleEndian(vector []float32) string {
	raw := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// embeddings reads a request for vectors of a model whose own have width elements.
// The second result tells whether they are written in base64.
func (f reader) embeddings(m *tts.Model, width int) (*embed.Request, bool) {
	r := &embed.Request{}
	raw, ok := f.Take("input")
	if !ok {
		f.Fail(jsonread.CodeMissing, "input", "an input is required.")
		return r, false
	}
	r.Texts = f.prompts("input", raw, fields.MaxInputs, m)
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
