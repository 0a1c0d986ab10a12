package openai

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// Prompts reads a text, a list of texts, a list of token ids, or a list of such
// lists.
func (f reader) Prompts(most int, m *tts.Model) []tts.Prompt {
	raw, ok := f.Take("prompt")
	if !ok {
		f.Fail(jsonread.CodeMissing, "prompt", "a prompt is required.")
		return nil
	}
	return f.prompts("prompt", raw, most, m)
}

// prompts is Prompts of raw, found at name.
func (f reader) prompts(name string, raw json.RawMessage, most int, m *tts.Model) []tts.Prompt {
	if s, ok := jsonread.Text(raw); ok {
		return []tts.Prompt{{Text: s}}
	}
	if jsonread.Kind(raw) != "a list" {
		f.WrongType(name, "a string, a list of strings, a list of token ids or a list of such lists", raw)
		return nil
	}
	first := "nothing"
	for item := range jsonread.Elements(raw) {
		first = jsonread.Kind(item)
		break
	}
	switch first {
	case "nothing":
		f.Fail(jsonread.CodeValue, name, "the list is empty.")
		return nil
	case "a number":
		return []tts.Prompt{{Tokens: f.promptTokens(name, raw, m)}}
	}
	items, _ := f.Items(name, raw, most)
	prompts := make([]tts.Prompt, len(items))
	for i, item := range items {
		switch jsonread.Kind(item) {
		case "a string":
			prompts[i].Text, _ = jsonread.Text(item)
		case "a list":
			prompts[i].Tokens = f.promptTokens(fmt.Sprintf("%s[%d]", name, i), item, m)
		}
		if jsonread.Kind(item) != first || first != "a string" && first != "a list" {
			f.WrongType(name, "a string, a list of strings, a list of token ids or a list of such lists", item)
		}
	}
	return prompts
}

// promptTokens reads raw, found at name, as the tokens of one prompt.
func (f reader) promptTokens(name string, raw json.RawMessage, m *tts.Model) []int32 {
	n := jsonread.Count(raw)
	switch {
	case n == 0:
		f.Fail(jsonread.CodeValue, name, "the list is empty.")
	case n > m.Context && f.Err == nil:
		f.Err = &tts.ContextError{Limit: m.Context, Prompt: n, Part: tts.Part(name)}
	}
	return f.Tokens(name, raw, m.Context, m.Vocab)
}

// Suffix reads the text after the one to write; nil: there is none.
func (f reader) Suffix(m *tts.Model) *tts.Infill {
	var text string
	f.Text("suffix", &text)
	if text == "" {
		return nil
	}
	if !m.Infills() {
		f.Fail(jsonread.CodeUnsupported, "suffix", "the model has no tokens to fill in the middle of a text.")
	}
	return &tts.Infill{Suffix: text}
}

// Candidates reads of whose search the choices are candidates: their numbers, the tokens
// that each has already, and what ends them besides the end of an answer.
func (f reader) Candidates(req *tts.Request, m *tts.Model, most int) {
	items, given := f.List("candidates", most)
	if !given {
		for _, name := range []string{"begun", "delimiters"} {
			if f.Has(name) {
				f.Fail(jsonread.CodeValue, name, "it goes with 'candidates' alone.")
			}
		}
		return
	}
	if len(items) == 0 {
		f.Fail(jsonread.CodeValue, "candidates", "the list is empty.")
	}
	req.Continued = make([]tts.Continued, len(items))
	for i, item := range items {
		n, err := strconv.ParseInt(string(item), 10, 32)
		if err != nil || n < 0 || n > fields.MaxCandidate {
			f.Fail(jsonread.CodeValue, fmt.Sprintf("candidates[%d]", i), "%s is not a number between 0 and %d.", jsonread.Brief(item), fields.MaxCandidate)
			return
		}
		req.Continued[i].Candidate = int(n)
	}
	f.begun(req, m, most)
	for _, name := range []string{"n", "echo", "suffix"} {
		if f.Has(name) {
			f.Fail(jsonread.CodeValue, name, "it cannot be given together with 'candidates'.")
		}
	}
	delimiters, _ := f.List("delimiters", fields.MaxDelimiters)
	for i, item := range delimiters {
		d, ok := jsonread.Text(item)
		if !ok || d == "" || len(d) > fields.MaxDelimiterLen {
			f.Fail(jsonread.CodeValue, fmt.Sprintf("delimiters[%d]", i), "a delimiter is a string of 1 to %d bytes.", fields.MaxDelimiterLen)
		}
		req.Delimiters = append(req.Delimiters, d)
	}
}

// begun reads the tokens that candidates have already.
func (f reader) begun(req *tts.Request, m *tts.Model, most int) {
	lists, given := f.List("begun", most)
	if given && len(lists) != len(req.Continued) {
		f.Fail(jsonread.CodeValue, "begun", "%d lists of tokens are not those of %d candidates.", len(lists), len(req.Continued))
		return
	}
	for i, list := range lists {
		req.Continued[i].Begun = f.Tokens(fmt.Sprintf("begun[%d]", i), list, m.Context, m.Vocab)
	}
}
