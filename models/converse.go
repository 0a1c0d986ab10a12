package models

import (
	"fmt"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// converse finds how the model's conversations are written: by the file's
// template, or without one in ChatML where the vocabulary has its tokens, or
// else as a plain dialogue. A template that does not parse is not replaced: the
// model was made for something else than what could be guessed.
func (b *Bundle) converse(md gguf.Metadata) {
	if source, ok := md.String("tokenizer.chat_template"); ok {
		if b.Template, b.TemplateErr = template.Parse(source); b.TemplateErr != nil {
			b.Warnings = append(b.Warnings, fmt.Sprintf("conversations are refused: %v", b.TemplateErr))
		}
		return
	}
	source, name := template.ChatML, "ChatML"
	if !b.isToken("<|im_start|>") || !b.isToken("<|im_end|>") {
		source, name = template.Plain, "a plain dialogue"
		b.Stops = []string{template.PlainStop}
	}
	begin := b.Tokenizer.Encode(nil, "", tokenizer.Options{AddSpecial: true})
	if bos, ok := b.Tokenizer.BOS(); ok && len(begin) > 0 && begin[0] == bos {
		source = "{{ bos_token }}" + source
	}
	b.Warnings = append(b.Warnings, "no chat template in the file: conversations are written as "+name)
	tmpl, err := template.Parse(source)
	if err != nil {
		panic(err) // it is one of ours
	}
	b.Template = tmpl
}

// isToken tells whether text is one token.
func (b *Bundle) isToken(text string) bool {
	ids := b.Tokenizer.Encode(nil, text, tokenizer.Options{ParseSpecial: true})
	return len(ids) == 1 && b.Tokenizer.Token(ids[0]) == text
}
