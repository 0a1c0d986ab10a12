package vllm

import (
	"encoding/json"
	"fmt"

	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/embed"
)

// reader reads a request's fields.
type reader struct{ fields.Reader }

// ranking is a request for the documents that answer a query best.
type ranking struct {
	Query     string
	Documents []string
	Top       int  // how many of them are wanted
	Repeat    bool // the answer holds their texts
}

// ranking reads one as Jina, Cohere and vLLM write it.
func (f reader) ranking() (r ranking) {
	if raw, ok := f.Take("query"); ok {
		r.Query = f.passage("query", raw)
	} else {
		f.Fail(jsonread.CodeMissing, "query", "a query is required.")
	}
	if !f.Has("documents") {
		f.Fail(jsonread.CodeMissing, "documents", "a list of documents is required.")
	}
	items, _ := f.List("documents", fields.MaxInputs)
	if f.Err == nil && len(items) == 0 {
		f.Fail(jsonread.CodeValue, "documents", "the list is empty.")
	}
	for i, raw := range items {
		r.Documents = append(r.Documents, f.passage(fmt.Sprintf("documents[%d]", i), raw))
	}
	r.Top = len(items)
	f.Int("top_n", &r.Top, 1, 1<<30)
	r.Top = min(r.Top, len(items))
	f.Bool("return_documents", &r.Repeat)
	f.Refuse("max_chunks_per_doc", "max_tokens_per_doc", "rank_fields", "return_embeddings", "instruction")
	f.Bookkeeping()
	return r
}

// passage returns a text, or an object that holds one.
func (f reader) passage(name string, raw json.RawMessage) (text string) {
	if jsonread.Kind(raw) != "an object" {
		text, ok := jsonread.Text(raw)
		if !ok {
			f.WrongType(name, "a string or an object with a text", raw)
		}
		return text
	}
	o, ok := f.Sub(name, raw)
	if !ok {
		return ""
	}
	if !o.Has("text") {
		o.Fail(jsonread.CodeMissing, "text", "a text is required.")
	}
	o.Text("text", &text)
	f.Adopt(o)
	return text
}

// pairs reads vLLM's text_1 and text_2: a text with one or with each of several, or two
// lists side by side.
func (f reader) pairs() []embed.Pair {
	first, second := f.passages("text_1"), f.passages("text_2")
	if f.Err == nil && len(first) != 1 && len(first) != len(second) {
		f.Fail(jsonread.CodeValue, "text_1", "it has %d texts and text_2 %d; give one, or as many.", len(first), len(second))
	}
	f.Bookkeeping()
	if f.Err != nil {
		return nil
	}
	pairs := make([]embed.Pair, len(second))
	for i := range pairs {
		pairs[i] = embed.Pair{Query: first[min(i, len(first)-1)], Document: second[i]}
	}
	return pairs
}

// passages reads a text or a list of texts.
func (f reader) passages(name string) (texts []string) {
	raw, ok := f.Take(name)
	if !ok {
		f.Fail(jsonread.CodeMissing, name, "a text or a list of texts is required.")
		return nil
	}
	if jsonread.Kind(raw) != "a list" {
		return []string{f.passage(name, raw)}
	}
	items, _ := f.Items(name, raw, fields.MaxInputs)
	if f.Err == nil && len(items) == 0 {
		f.Fail(jsonread.CodeValue, name, "the list is empty.")
	}
	for i, raw := range items {
		texts = append(texts, f.passage(fmt.Sprintf("%s[%d]", name, i), raw))
	}
	return texts
}
