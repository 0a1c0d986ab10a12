package server

import (
	"context"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
)

// tokenize is POST /tokenize. It reads a prompt or messages as vLLM does, and a
// content as llama.cpp does: without BOS, unless the request asks for it.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	f := openai.Fields{Fields: body}
	g, err := s.begin(body)
	if err != nil {
		return err
	}
	var names, pieces bool
	p := tokenized(f, &names, &pieces)
	g.model.Switch(&p)
	if err := s.finish(body); err != nil {
		return err
	}
	prepared, err := prepareAside(r.Context(), g.model.Model, &p)
	if err != nil {
		return err
	}
	ids := prepared.Tokens
	s.reply(r.Context(), w, func(p *jsonwrite.Reply) {
		p.Raw(fmt.Sprintf(`{"count":%d,"max_model_len":%d,"tokens":`, len(ids), g.model.Context))
		p.List(len(ids), func(i int) {
			if pieces {
				p.Value(newTokenPiece(ids[i], g.model.Bytes(ids[i])))
			} else {
				p.Int(ids[i])
			}
		})
		if p.Raw(`,"token_strs":`); names {
			p.List(len(ids), func(i int) { p.Bytes(g.model.Bytes(ids[i])) })
		} else {
			p.Raw("null")
		}
		writeTruncation(p, prepared)
		p.Raw("}")
	})
	return nil
}

// prepareAside prepares a prompt as work beside the engines, even a short one:
// nothing else is done for these requests.
func prepareAside(ctx context.Context, m *tts.Model, p *tts.Prompt) (*tts.Prepared, error) {
	ctx, leave, err := cpulimit.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return m.Prepare(ctx, p, 0)
}

// writeTruncation adds the field that tells of messages that were left out.
func writeTruncation(p *jsonwrite.Reply, prepared *tts.Prepared) {
	if t := openai.NewTruncation(prepared.Dropped); t != nil {
		p.Raw(`,"truncation":`)
		p.Value(t)
	}
}

// tokenized reads what to tokenise, one of messages, prompt and content, and the
// fields that belong to it: whether the answer has the tokens' names beside their
// ids, or ids and pieces in one list.
func tokenized(f openai.Fields, names, pieces *bool) (p tts.Prompt) {
	var forms []string
	for _, form := range []string{"messages", "prompt", "content"} {
		if f.Has(form) {
			forms = append(forms, form)
		}
	}
	switch {
	case len(forms) == 0:
		f.Fail(jsonread.CodeMissing, "prompt", "a prompt, a content or messages are required.")
		return p
	case len(forms) > 1:
		f.Fail(jsonread.CodeValue, forms[1], "it cannot be given together with '%s'.", forms[0])
		return p
	}
	special := forms[0] == "prompt"
	switch forms[0] {
	case "messages":
		p, _ = f.Conversation()
		f.Tools(&p)
	case "prompt":
		f.Text("prompt", &p.Text)
		f.Bool("add_special_tokens", &special)
	case "content":
		parse := true
		f.Text("content", &p.Text)
		f.Bool("add_special", &special)
		f.Bool("parse_special", &parse)
		f.Bool("with_pieces", pieces)
		p.Literal = !parse
	}
	f.Bool("return_token_strs", names)
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
	return tokenPiece{id, jsonwrite.ByteList(piece)}
}

// detokenize is POST /detokenize: the answer has a prompt for vLLM's clients and a
// content for llama.cpp's, both with special tokens written out.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	f := openai.Fields{Fields: body}
	g, err := s.begin(body)
	if err != nil {
		return err
	}
	if !f.Has("tokens") {
		f.Fail(jsonread.CodeMissing, "tokens", "a list of token ids is required.")
	}
	ids := f.IDs("tokens", openai.MaxDetokenize, g.model.Vocab)
	if err := s.finish(body); err != nil {
		return err
	}
	size := 0
	for _, id := range ids {
		size += len(g.model.Bytes(id))
	}
	if err := recordOf(r.Context()).lease.Grow(decodedFactor * int64(size)); err != nil {
		return err
	}
	_, leave, err := cpulimit.Enter(r.Context())
	if err != nil {
		return err
	}
	text := g.model.Spell(ids)
	leave()
	s.reply(r.Context(), w, func(p *jsonwrite.Reply) {
		p.Raw(`{"prompt":`)
		p.Text(text)
		p.Raw(`,"content":`)
		p.Text(text)
		p.Raw("}")
	})
	return nil
}

// decodedFactor is how many bytes are held for one of a decoded text: a byte that
// belongs to no character becomes three.
const decodedFactor = 4

// applyTemplate is llama.cpp's POST /apply-template: the text that a model
// would read for messages.
func (s *Server) applyTemplate(w http.ResponseWriter, r *http.Request, body *jsonread.Fields) error {
	f := openai.Fields{Fields: body}
	g, err := s.begin(body)
	if err != nil {
		return err
	}
	p, _ := f.Conversation()
	g.model.Switch(&p)
	f.Tools(&p)
	if err := s.finish(body); err != nil {
		return err
	}
	prepared, err := prepareAside(r.Context(), g.model.Model, &p)
	if err != nil {
		return err
	}
	s.reply(r.Context(), w, func(p *jsonwrite.Reply) {
		p.Raw(`{"prompt":`)
		p.Text(prepared.Text)
		writeTruncation(p, prepared)
		p.Raw("}")
	})
	return nil
}

// tokenizerInfo is vLLM's GET /tokenizer_info, from which evaluation harnesses learn
// that they need no tokenizer of their own. ?model= names another model than the
// first.
func (s *Server) tokenizerInfo(w http.ResponseWriter, r *http.Request) error {
	models, err := s.registered()
	if err != nil {
		return err
	}
	m, _, err := models.Find(r.URL.Query().Get("model"))
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
