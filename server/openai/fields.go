package openai

import (
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// reader reads the fields that only these endpoints have.
type reader struct{ fields.Reader }

func newReader(c *api.Call) reader { return reader{fields.Reader{Fields: c.Body}} }

// Where the thinking of models goes.
const (
	ReasoningAuto = "auto" // to reasoning_content
	ReasoningNone = "none" // it stays in the content, with its marks
)

// reasoningFormat reads whether thinking is kept apart from the answer.
func (f reader) reasoningFormat(format string) bool {
	f.OneOf("reasoning_format", jsonread.CodeValue, &format, ReasoningAuto, ReasoningNone)
	return format == ReasoningAuto
}

// receiptOfHashes asks for a receipt that holds no words of the request or the answer.
const receiptOfHashes = "hash"

// wish is the receipt that a request asks for.
type wish struct {
	wanted bool
	hashes bool // and no words of the request or the answer
}

// receipt reads whether the answer is to have a receipt.
func (f reader) receipt() (w wish) {
	if raw := f.Raw("receipt"); jsonread.Kind(raw) != "a string" {
		f.Bool("receipt", &w.wanted)
		return w
	}
	var word string
	if f.String("receipt", &word); f.Err == nil && word != receiptOfHashes {
		f.Fail(jsonread.CodeValue, "receipt", "expected true, false or \"%s\", but got '%s'.", receiptOfHashes, jsonread.Brief(word))
	}
	return wish{true, true}
}

// echoed reads vLLM's echo: the message that the answer continues and is to begin with.
func (f reader) echoed(p *tts.Prompt) (text string) {
	var echo bool
	if f.Bool("echo", &echo); echo && p.Ending == tts.ContinueFinalMessage && len(p.Messages) > 0 {
		text, _ = p.Messages[len(p.Messages)-1].Content.(string)
	}
	return text
}

// modalities accepts text.
func (f reader) modalities() {
	raw, ok := f.Take("modalities")
	if !ok {
		return
	}
	only := ""
	if jsonread.Kind(raw) == "a list" && jsonread.Count(raw) == 1 {
		for item := range jsonread.Elements(raw) {
			only, _ = jsonread.Text(item)
		}
	}
	if only != "text" {
		f.Fail(jsonread.CodeUnsupported, "modalities", `this server supports ["text"] only.`)
	}
}

// streaming reads stream and stream_options.
func (f reader) streaming() (stream, includeUsage bool) {
	f.Bool("stream", &stream)
	if !stream && f.Has("stream_options") {
		f.Fail(jsonread.CodeValue, "stream_options", "it is only allowed when 'stream' is true.")
	}
	f.In("stream_options", func(o *jsonread.Fields) {
		o.Bool("include_usage", &includeUsage)
	})
	return stream, includeUsage
}
