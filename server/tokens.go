package server

import (
	"net/http"
	"strings"

	"github.com/lutra-lm/lutra/tts"
)

// tokenize is POST /tokenize with vLLM's fields (prompt or messages,
// add_special_tokens, return_token_strs) and llama.cpp's (content,
// add_special). A prompt's special tokens are read as such.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) error {
	f, err := s.readFields(w, r)
	if err != nil {
		return err
	}
	g, err := s.begin(f)
	if err != nil {
		return err
	}
	var names bool
	f.bool("return_token_strs", &names)
	var p tts.Prompt
	if f.has("messages") {
		p = f.conversation()
	} else {
		if !f.has("prompt") && !f.has("content") {
			f.fail(codeMissing, "prompt", "a prompt, a content or messages are required.")
		}
		f.string("content", &p.Text)
		f.string("prompt", &p.Text)
		special := true
		f.bool("add_special", &special)
		f.bool("add_special_tokens", &special)
		p.Bare = !special
	}
	if err := s.finish(f); err != nil {
		return err
	}
	ids, err := g.model.Encode(r.Context(), &p)
	if err != nil {
		return err
	}
	out := struct {
		Count       int      `json:"count"`
		MaxModelLen int      `json:"max_model_len"`
		Tokens      []int32  `json:"tokens"`
		TokenStrs   []string `json:"token_strs"`
	}{Count: len(ids), MaxModelLen: g.model.Context, Tokens: append([]int32{}, ids...)}
	if names {
		out.TokenStrs = make([]string, len(ids))
		for i, id := range ids {
			out.TokenStrs[i] = strings.ToValidUTF8(string(g.model.Bytes(id)), "\ufffd")
		}
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// detokenize is POST /detokenize: the answer is a prompt to vLLM's clients and
// a content to llama.cpp's.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) error {
	f, err := s.readFields(w, r)
	if err != nil {
		return err
	}
	g, err := s.begin(f)
	if err != nil {
		return err
	}
	if !f.has("tokens") {
		f.fail(codeMissing, "tokens", "a list of token ids is required.")
	}
	var ids []int32
	f.ids("tokens", &ids)
	if err := s.finish(f); err != nil {
		return err
	}
	for i, id := range ids {
		if id < 0 || int(id) >= g.model.Vocab {
			return invalid(codeValue, "tokens", "Token %d is %d, but the vocabulary has ids 0 to %d.", i, id, g.model.Vocab-1)
		}
	}
	text := g.model.Decode(ids)
	writeJSON(w, http.StatusOK, struct {
		Prompt  string `json:"prompt"`
		Content string `json:"content"`
	}{text, text})
	return nil
}

// applyTemplate is llama.cpp's POST /apply-template: the text that a model
// would read for messages.
func (s *Server) applyTemplate(w http.ResponseWriter, r *http.Request) error {
	f, err := s.readFields(w, r)
	if err != nil {
		return err
	}
	g, err := s.begin(f)
	if err != nil {
		return err
	}
	p := f.conversation()
	if err := s.finish(f); err != nil {
		return err
	}
	text, err := g.model.Render(r.Context(), &p)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		Prompt string `json:"prompt"`
	}{text})
	return nil
}
