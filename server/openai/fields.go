package openai

import "github.com/lutra-lm/lutra/server/jsonread"

// Fields are a request's fields under the names that OpenAI and other servers use.
type Fields struct{ *jsonread.Fields }

// Where the thinking of models goes.
const (
	ReasoningAuto = "auto" // to reasoning_content
	ReasoningNone = "none" // it stays in the content, with its marks
)

// ReasoningFormat reads whether thinking is kept apart from the answer.
func (f Fields) ReasoningFormat(format string) bool {
	if f.String("reasoning_format", &format); format != ReasoningAuto && format != ReasoningNone {
		f.Fail(jsonread.CodeValue, "reasoning_format", "expected auto or none, but got '%s'.", jsonread.Brief([]byte(format)))
	}
	return format == ReasoningAuto
}

// receiptOfHashes asks for a receipt that holds no words of the request or the answer.
const receiptOfHashes = "hash"

// Receipt reads whether the answer is to have a receipt, and if so whether one of hashes
// alone.
func (f Fields) Receipt() (wanted, hashes bool) {
	if raw := f.Raw("receipt"); jsonread.Kind(raw) != "a string" {
		f.Bool("receipt", &wanted)
		return wanted, false
	}
	var word string
	if f.String("receipt", &word); f.Err == nil && word != receiptOfHashes {
		f.Fail(jsonread.CodeValue, "receipt", "expected true, false or \"%s\", but got '%s'.", receiptOfHashes, jsonread.Brief([]byte(word)))
	}
	return true, true
}

// Echoes reads vLLM's echo: whether the answer begins with the message that it
// continues.
func (f Fields) Echoes() (echo bool) {
	f.Bool("echo", &echo)
	return echo
}

// Modalities accepts text.
func (f Fields) Modalities() {
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

// Streaming reads stream and stream_options.
func (f Fields) Streaming() (stream, includeUsage bool) {
	f.Bool("stream", &stream)
	if !stream && f.Has("stream_options") {
		f.Fail(jsonread.CodeValue, "stream_options", "it is only allowed when 'stream' is true.")
	}
	if o, ok := f.Object("stream_options"); ok {
		o.Bool("include_usage", &includeUsage)
		f.Adopt(o)
	}
	return stream, includeUsage
}
