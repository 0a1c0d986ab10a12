package openai

import (
	"encoding/json"
	"fmt"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/embed"
)

// Embeddings reads a request for vectors of a model whose own have so many elements.
// The second result tells whether they are written in base64.
func (f Fields) Embeddings(m *tts.Model, width int) (*embed.Request, bool) {
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
	f.String("encoding_format", &format)
	if format != "float" && format != "base64" {
		f.Fail(jsonread.CodeValue, "encoding_format", "expected float or base64, but got '%s'.", jsonread.Brief([]byte(format)))
	}
	f.Bookkeeping()
	return r, format == "base64"
}

// Ranking is a request for the documents that answer a query best.
type Ranking struct {
	Query     string
	Documents []string
	Top       int  // how many of them are wanted
	Repeat    bool // the answer holds their texts
}

// Ranking reads one as Jina, Cohere and vLLM write it.
func (f Fields) Ranking() (r Ranking) {
	if raw, ok := f.Take("query"); ok {
		r.Query = f.passage("query", raw)
	} else {
		f.Fail(jsonread.CodeMissing, "query", "a query is required.")
	}
	if !f.Has("documents") {
		f.Fail(jsonread.CodeMissing, "documents", "a list of documents is required.")
	}
	items, _ := f.List("documents", MaxInputs)
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
	f.refuse("max_chunks_per_doc", "max_tokens_per_doc", "rank_fields", "return_embeddings", "instruction")
	f.Bookkeeping()
	return r
}

// passage is a text, or an object that holds one.
func (f Fields) passage(name string, raw json.RawMessage) (text string) {
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

// Pairs reads vLLM's text_1 and text_2: a text with one or with each of several, or two
// lists side by side.
func (f Fields) Pairs() []embed.Pair {
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
func (f Fields) passages(name string) (texts []string) {
	raw, ok := f.Take(name)
	if !ok {
		f.Fail(jsonread.CodeMissing, name, "a text or a list of texts is required.")
		return nil
	}
	if jsonread.Kind(raw) != "a list" {
		return []string{f.passage(name, raw)}
	}
	items, _ := f.Items(name, raw, MaxInputs)
	if f.Err == nil && len(items) == 0 {
		f.Fail(jsonread.CodeValue, name, "the list is empty.")
	}
	for i, raw := range items {
		texts = append(texts, f.passage(fmt.Sprintf("%s[%d]", name, i), raw))
	}
	return texts
}
