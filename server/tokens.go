package server

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/tts"
)

// tokenize is POST /tokenize. A prompt or messages are read as vLLM reads them,
// a content as llama.cpp does: it has no BOS unless that is asked for.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) error {
	f, err := s.readFields(w, r)
	if err != nil {
		return err
	}
	g, err := s.begin(f)
	if err != nil {
		return err
	}
	var names, pieces bool
	p := f.tokenized(&names, &pieces)
	if err := s.finish(f); err != nil {
		return err
	}
	prepared, err := g.model.Prepare(r.Context(), &p, 0)
	if err != nil {
		return err
	}
	ids := prepared.Tokens
	out := struct {
		Count       int         `json:"count"`
		MaxModelLen int         `json:"max_model_len"`
		Tokens      any         `json:"tokens"`
		TokenStrs   []string    `json:"token_strs"`
		Truncation  *truncation `json:"truncation,omitempty"`
	}{Count: len(ids), MaxModelLen: g.model.Context, Tokens: append([]int32{}, ids...), Truncation: newTruncation(prepared.Dropped)}
	if names {
		out.TokenStrs = make([]string, len(ids))
		for i, id := range ids {
			out.TokenStrs[i] = strings.ToValidUTF8(string(g.model.Bytes(id)), "\ufffd")
		}
	}
	if pieces {
		list := make([]tokenPiece, len(ids))
		for i, id := range ids {
			list[i] = newTokenPiece(id, g.model.Bytes(id))
		}
		out.Tokens = list
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// tokenized reads what is to be tokenised, one of messages, prompt and
// content, and the fields that belong to it: whether the answer has the tokens'
// names beside their ids, or ids and pieces in one list.
func (f *fields) tokenized(names, pieces *bool) (p tts.Prompt) {
	var forms []string
	for _, form := range []string{"messages", "prompt", "content"} {
		if f.has(form) {
			forms = append(forms, form)
		}
	}
	switch {
	case len(forms) == 0:
		f.fail(codeMissing, "prompt", "a prompt, a content or messages are required.")
		return p
	case len(forms) > 1:
		f.fail(codeValue, forms[1], "it cannot be given together with '%s'.", forms[0])
		return p
	}
	special := forms[0] == "prompt"
	switch forms[0] {
	case "messages":
		p = f.conversation()
		f.tools(&p)
	case "prompt":
		f.string("prompt", &p.Text)
		f.bool("add_special_tokens", &special)
	case "content":
		parse := true
		f.string("content", &p.Text)
		f.bool("add_special", &special)
		f.bool("parse_special", &parse)
		f.bool("with_pieces", pieces)
		p.Literal = !parse
	}
	f.bool("return_token_strs", names)
	p.Bare = !special
	return p
}

// tokenPiece is a token as llama.cpp writes it: bytes that are no whole
// characters are a list of numbers.
type tokenPiece struct {
	ID    int32 `json:"id"`
	Piece any   `json:"piece"`
}

func newTokenPiece(id int32, piece []byte) tokenPiece {
	if utf8.Valid(piece) {
		return tokenPiece{id, string(piece)}
	}
	return tokenPiece{id, byteList(piece)}
}

// detokenize is POST /detokenize: the answer is a prompt to vLLM's clients and
// a content to llama.cpp's. Both write special tokens out.
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
	text := g.model.Spell(ids)
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
	f.tools(&p)
	if err := s.finish(f); err != nil {
		return err
	}
	prepared, err := g.model.Prepare(r.Context(), &p, 0)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		Prompt     string      `json:"prompt"`
		Truncation *truncation `json:"truncation,omitempty"`
	}{prepared.Text, newTruncation(prepared.Dropped)})
	return nil
}

// tokenizerInfo is vLLM's GET /tokenizer_info, by which evaluation harnesses
// find that they need no tokenizer of their own. ?model= names another model
// than the first.
func (s *Server) tokenizerInfo(w http.ResponseWriter, r *http.Request) error {
	m, _, err := s.model(r.URL.Query().Get("model"))
	if err != nil {
		return err
	}
	special := func(id int32, ok bool) *string {
		if !ok {
			return nil
		}
		return new(m.Tokenizer.Token(id))
	}
	out := struct {
		Class    string  `json:"tokenizer_class"`
		BOS      *string `json:"bos_token"`
		EOS      *string `json:"eos_token"`
		Length   int     `json:"model_max_length"`
		Vocab    int     `json:"vocab_size"`
		Template *string `json:"chat_template"`
	}{Class: "lutra", BOS: special(m.Tokenizer.BOS()), EOS: special(m.Tokenizer.EOS()), Length: m.Context, Vocab: m.Vocab}
	if m.Template != nil {
		out.Template = new(m.Template.Source())
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}
