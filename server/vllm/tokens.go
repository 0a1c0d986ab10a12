package vllm

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
)

// tokenize answers POST /tokenize. It reads a prompt or messages as vLLM does, and a
// content as llama.cpp does: without BOS, unless the request asks for it.
func tokenize(c *api.Call) error {
	a, err := c.Model()
	if err != nil {
		return err
	}
	var names, pieces bool
	p := tokenized(fields.Reader{Fields: c.Body}, &names, &pieces)
	a.Model.Switch(&p)
	if err := fields.Finish(c); err != nil {
		return err
	}
	prepared, err := a.Prepare(c.Context(), &p)
	if err != nil {
		return err
	}
	ids := prepared.Tokens
	return c.Reply(func(p *jsonwrite.Reply) {
		p.Raw(fmt.Sprintf(`{"count":%d,"max_model_len":%d,"tokens":`, len(ids), a.Model.Context))
		p.List(len(ids), func(i int) {
			if pieces {
				p.Value(newTokenPiece(ids[i], a.Model.Bytes(ids[i])))
			} else {
				p.Int(ids[i])
			}
		})
		if p.Raw(`,"token_strs":`); names {
			p.List(len(ids), func(i int) { p.Bytes(a.Model.Bytes(ids[i])) })
		} else {
			p.Raw("null")
		}
		report.WriteTruncation(p, prepared)
		p.Raw("}")
	})
}

// tokenized reads the text to tokenise, from messages, prompt or content, and the fields that belong to it. names
// asks for the tokens' names besides their ids, pieces for ids and pieces in one list.
func tokenized(f fields.Reader, names, pieces *bool) (p tts.Prompt) {
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
		p.NoSpecialTokens = !parse
	}
	f.Bool("return_token_strs", names)
	p.NoBOS = !special
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

// detokenize answers POST /detokenize: there is a prompt for vLLM's clients and a content
// for llama.cpp's, both with special tokens written out.
func detokenize(c *api.Call) error {
	f := fields.Reader{Fields: c.Body}
	a, err := c.Model()
	if err != nil {
		return err
	}
	if !f.Has("tokens") {
		f.Fail(jsonread.CodeMissing, "tokens", "a list of token ids is required.")
	}
	ids := f.IDs("tokens", fields.MaxDetokenize, a.Model.Vocab)
	if err := fields.Finish(c); err != nil {
		return err
	}
	size := 0
	for _, id := range ids {
		size += len(a.Model.Bytes(id))
	}
	if err := c.Lease.Grow(decodedFactor * int64(size)); err != nil {
		return err
	}
	text, err := spell(c.Context(), a.Model.Model, ids)
	if err != nil {
		return err
	}
	return c.Reply(func(p *jsonwrite.Reply) {
		p.Raw(`{"prompt":`)
		p.Text(text)
		p.Raw(`,"content":`)
		p.Text(text)
		p.Raw("}")
	})
}

// spell returns the text of ids, written out as work beside the engines.
func spell(ctx context.Context, m *tts.Model, ids []int32) (string, error) {
	_, leave, err := cpulimit.Enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	return m.Spell(ids), nil
}

// decodedFactor is the number of bytes that are held for one of a decoded text: a byte that belongs to no character
// becomes three.
const decodedFactor = 4

// tokenizerInfo answers GET /tokenizer_info, from which evaluation harnesses learn
// that they need no tokenizer of their own. ?model= names another model than the
// first.
func tokenizerInfo(c *api.Call) error {
	name := c.URL.Query().Get("model")
	models, err := c.Hold(c, name)
	if err != nil {
		return err
	}
	m, _, err := models.Find(name)
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
	return c.JSON(out)
}
