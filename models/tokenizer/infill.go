package tokenizer

// Infill is the tokens of a model that fills in the middle of a text. A prompt is
// prefix token, prefix, suffix token, suffix, middle token; the model goes on with what
// belongs between. Tokens that the vocabulary lacks are -1.
type Infill struct {
	Prefix, Suffix, Middle int32
	Repository, File       int32 // begin a repository's name, and a file's name before its text
}

// Known tells whether the model can fill in.
func (f Infill) Known() bool { return f.Prefix >= 0 && f.Suffix >= 0 && f.Middle >= 0 }

// infillTexts lists the tokens as published model families write them.
var infillTexts = []struct{ prefix, suffix, middle string }{
	{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}, // Qwen, CodeGemma
	{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},       // StarCoder, Granite
	{"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},       // Refact
	{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},       // DeepSeek
	{"▁<PRE>", "▁<SUF>", "▁<MID>"},                         // CodeLlama
}

// findInfill reads the tokens that the file names, or else knows by their texts. id
// reads one of the file's.
func (v *vocab) findInfill(id func(name string, def int32) int32) {
	f := Infill{Repository: v.idOr("<|repo_name|>"), File: v.idOr("<|file_sep|>")}
	named := func(names ...string) int32 {
		for _, name := range names {
			if i := id(name, -1); i >= 0 {
				return i
			}
		}
		return -1
	}
	f.Prefix, f.Suffix, f.Middle = named("fim_pre", "prefix"), named("fim_suf", "suffix"), named("fim_mid", "middle")
	f.Repository, f.File = max(f.Repository, named("fim_rep")), max(f.File, named("fim_sep"))
	for _, t := range infillTexts {
		if f.Known() {
			break
		}
		f.Prefix, f.Suffix, f.Middle = v.idOr(t.prefix), v.idOr(t.suffix), v.idOr(t.middle)
	}
	v.infill = f
}

// idOr returns the id of a token that is no ordinary text, or -1.
func (v *vocab) idOr(text string) int32 {
	if i, ok := v.ids[text]; ok && v.kinds[i]&(control|userDefined) != 0 {
		return i
	}
	return -1
}

// Infill returns the tokens of a model that fills in the middle of a text.
func (v *vocab) Infill() Infill { return v.infill }
