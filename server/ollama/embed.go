package ollama

import (
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
	vectors "github.com/lutra-lm/lutra/tts/embed"
)

// embed reads POST /api/embed for a model whose vectors have so many elements.
func (f fields) embed(width int) *vectors.Request {
	r := &vectors.Request{Truncate: true}
	if raw, ok := f.Take("input"); !ok {
		f.Fail(jsonread.CodeMissing, "input", "an input is required.")
	} else if text, ok := jsonread.Text(raw); ok {
		if text != "" { // models are loaded so
			r.Texts = []tts.Prompt{{Text: text}}
		}
	} else if jsonread.Kind(raw) != "a list" {
		f.WrongType("input", "a string or a list of strings", raw)
	} else {
		items, _ := f.Items("input", raw, openai.MaxInputs)
		for i, raw := range items {
			text, ok := jsonread.Text(raw)
			if !ok {
				f.WrongType(fmt.Sprintf("input[%d]", i), "a string", raw)
			}
			r.Texts = append(r.Texts, tts.Prompt{Text: text})
		}
	}
	f.Bool("truncate", &r.Truncate)
	f.Int("dimensions", &r.Dimensions, 0, width)
	f.embedOptions(r)
	return r
}

// embedOptions reads how much of a text is read; other options say how tokens are sampled.
func (f fields) embedOptions(r *vectors.Request) {
	if o, ok := f.Object("options"); ok {
		o.Int("num_ctx", &r.Most, 0, math.MaxInt32)
		if f.Err == nil {
			f.Err = o.Err
		}
	}
	f.Ignore("keep_alive")
}

// embedPrompt reads POST /api/embeddings.
func (f fields) embedPrompt() *vectors.Request {
	r, text := &vectors.Request{Truncate: true}, ""
	if f.Text("prompt", &text); text != "" { // models are loaded so
		r.Texts = []tts.Prompt{{Text: text}}
	}
	f.embedOptions(r)
	return r
}
