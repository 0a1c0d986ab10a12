package ollama

import (
	"fmt"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
)

// Embed reads POST /api/embed for a model whose vectors have so many elements.
func (f Fields) Embed(width int) *embed.Request {
	r := &embed.Request{Truncate: true}
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
	f.Ignore("keep_alive", "options")
	return r
}

// EmbedPrompt reads the text of POST /api/embeddings.
func (f Fields) EmbedPrompt() (text string) {
	f.Text("prompt", &text)
	f.Ignore("keep_alive", "options")
	return text
}
