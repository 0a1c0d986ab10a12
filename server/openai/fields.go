package openai

import (
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// Fields are a request's fields under the names that OpenAI and other servers use, with a method
// for each or for a few that belong together.
type Fields struct{ *jsonread.Fields }

// Where the thinking of models goes.
const (
	ReasoningAuto = "auto" // to reasoning_content
	ReasoningNone = "none" // it stays in the content, with its marks
)

// reasoningFormat reads whether thinking is kept apart from the answer.
func (f Fields) reasoningFormat(format string) bool {
	f.OneOf("reasoning_format", jsonread.CodeValue, &format, ReasoningAuto, ReasoningNone)
	return format == ReasoningAuto
}

// receiptOfHashes asks for a receipt that holds no words of the request or the answer.
const receiptOfHashes = "hash"

// wish is what a request wants of a receipt.
type wish struct {
	wanted bool
	hashes bool // and no words of the request or the answer
}

// receipt reads whether the answer is to have a receipt.
func (f Fields) receipt() (w wish) {
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
func (f Fields) echoed(p *tts.Prompt) (text string) {
	var echo bool
	if f.Bool("echo", &echo); echo && p.Ending == tts.ContinueFinalMessage && len(p.Messages) > 0 {
		text, _ = p.Messages[len(p.Messages)-1].Content.(string)
	}
	return text
}

// modalities accepts text.
func (f Fields) modalities() {
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

// Bookkeeping checks fields that clients keep for themselves.
func (f Fields) Bookkeeping() {
	var s string
	f.String("user", &s)
	f.metadata()
}

// streaming reads stream and stream_options.
func (f Fields) streaming() (stream, includeUsage bool) {
	f.Bool("stream", &stream)
	if !stream && f.Has("stream_options") {
		f.Fail(jsonread.CodeValue, "stream_options", "it is only allowed when 'stream' is true.")
	}
	f.In("stream_options", func(o *jsonread.Fields) {
		o.Bool("include_usage", &includeUsage)
	})
	return stream, includeUsage
}

// metadata checks the strings that clients store with a request.
func (f Fields) metadata() {
	raw, ok := f.Take("metadata")
	if !ok {
		return
	}
	if jsonread.Kind(raw) != "an object" {
		f.WrongType("metadata", "an object of strings", raw)
		return
	}
	n := 0
	for written, value := range jsonread.Members(raw) {
		name, _ := jsonread.Text(written)
		s, ok := jsonread.Text(value)
		n++
		switch {
		case !ok:
			f.WrongType("metadata", "an object of strings", value)
		case n > MaxMetadata:
			f.Fail(jsonread.CodeValue, "metadata", "at most %d entries are allowed.", MaxMetadata)
		case len(name) > MaxMetadataName || len(s) > MaxMetadataValue:
			f.Fail(jsonread.CodeValue, "metadata", "names have at most %d bytes and values %d.", MaxMetadataName, MaxMetadataValue)
		}
		if f.Err != nil {
			return
		}
	}
}

// scalingInMetadata returns the string in a request's metadata that asks for scaling. What
// else is there, or wrong, is for those APIs to see that have metadata.
func (f Fields) scalingInMetadata() (plan string) {
	raw := f.Raw("metadata")
	if jsonread.Kind(raw) != "an object" {
		return ""
	}
	for written, value := range jsonread.Members(raw) {
		if name, _ := jsonread.Text(written); name == api.ScalingField {
			plan, _ = jsonread.Text(value)
		}
	}
	if len(plan) > MaxMetadataValue {
		return ""
	}
	return plan
}
