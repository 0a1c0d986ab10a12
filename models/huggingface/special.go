package huggingface

import (
	"slices"
	"strings"
)

// specialNames are the tokens that tokenizer_config.json and config.json name, and the words
// of tokenizer.ggml.*_token_id for them.
var specialNames = []struct{ from, to string }{
	{"bos", "bos"}, {"eos", "eos"}, {"unk", "unknown"}, {"sep", "seperator"}, {"pad", "padding"}, {"cls", "cls"}, {"mask", "mask"},
}

// set makes the key of a special token.
func (v *vocab) set(name string, id int) { v.md["tokenizer.ggml."+name+"_token_id"] = uint32(id) }

// specials makes the keys of special tokens.
func (v *vocab) specials(config, tokens *values) {
	for _, s := range specialNames {
		if id, ok := v.special(tokens, s.from+"_token"); ok {
			v.set(s.to, id)
		} else if id, ok := whole(config.m[s.from+"_token_id"]); ok && id >= 0 && id < len(v.tokens) {
			v.set(s.to, id)
		}
	}
}

// bounds makes the keys of the special tokens that texts begin and end with.
func (v *vocab) bounds(tokens *values, encoder bool) {
	begin, end := tokens.flag("add_bos_token", false), tokens.flag("add_eos_token", false)
	if p := v.PostProcessor.step("TemplateProcessing"); p != nil {
		begin, end = false, false
		if n := len(p.Single); n > 1 {
			begin, end = p.Single[0].Special != nil, p.Single[n-1].Special != nil
			if begin && v.md["tokenizer.ggml.bos_token_id"] == nil {
				if id, ok := v.ids[p.Single[0].Special.ID]; ok {
					v.set("bos", id)
				}
			}
		}
	}
	for _, kind := range []string{"BertProcessing", "RobertaProcessing"} { // of older files
		if v.PostProcessor.step(kind) != nil {
			begin, end = true, true
		}
	}
	for from, to := range map[string]string{"cls": "bos", "seperator": "eos"} { // between which encoders read a text
		if id := v.md["tokenizer.ggml."+from+"_token_id"]; encoder && id != nil && v.md["tokenizer.ggml."+to+"_token_id"] == nil {
			v.md["tokenizer.ggml."+to+"_token_id"] = id
		}
	}
	v.md["tokenizer.ggml.add_bos_token"], v.md["tokenizer.ggml.add_eos_token"] = begin, end
}

// special finds a token that a file names, as a text or as an object with one.
func (v *vocab) special(of *values, name string) (id int, ok bool) {
	text, ok := of.m[name].(string)
	if !ok {
		in, _ := of.m[name].(map[string]any)
		if text, ok = in["content"].(string); !ok {
			return 0, false
		}
	}
	id, ok = v.ids[text]
	return id, ok
}

// ends makes the keys of further tokens that end an answer: generation_config.json, or
// config.json without it, may name several, and GGUF has words for three.
func (v *vocab) ends(config, generation *values) {
	of := generation
	if !of.has("eos_token_id") {
		of = config
	}
	list, ok := of.m["eos_token_id"].([]any)
	if !ok && of.has("eos_token_id") {
		list = []any{of.m["eos_token_id"]}
	}
	words := []string{"eos", "eot", "eom"}
	var named []int
	if id, ok := v.md["tokenizer.ggml.eos_token_id"].(uint32); ok {
		named, words = append(named, int(id)), words[1:]
	}
	for _, x := range list {
		id, ok := whole(x)
		if !ok || id < 0 || id >= len(v.tokens) {
			of.fail("eos_token_id", "has %s, which is no token of %d", brief(x), len(v.tokens))
			return
		}
		if slices.Contains(named, id) {
			continue
		}
		if len(words) == 0 {
			of.fail("eos_token_id", "names %d tokens: %w: more than three", len(list), ErrUnsupported)
			return
		}
		v.md["tokenizer.ggml."+words[0]+"_token_id"] = uint32(id)
		named, words = append(named, id), words[1:]
	}
}

// maxTemplates bounds the named templates of a model.
const maxTemplates = 16

// template makes the keys of the chat template: of its own file, or in tokenizer_config.json.
func (b *builder) template(tokens *values) {
	const key = "tokenizer.chat_template"
	if text, ok := b.text(fileTemplate, maxText); ok {
		b.md[key] = string(text)
		return
	}
	if text, ok := tokens.m["chat_template"].(string); ok {
		b.md[key] = text
		return
	}
	list := tokens.list("chat_template")
	if len(list) > maxTemplates {
		tokens.fail("chat_template", "has %d templates, at most %d are read", len(list), maxTemplates)
		return
	}
	for _, x := range list {
		entry, _ := x.(map[string]any)
		name, named := entry["name"].(string)
		text, ok := entry["template"].(string)
		if !named || !ok {
			tokens.fail("chat_template", "has %s, want a name and a template", brief(x))
			return
		}
		if name == "default" {
			b.md[key] = text
		} else {
			b.md[key+"."+strings.ToLower(name)] = text
		}
	}
}
