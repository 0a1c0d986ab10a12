package huggingface

import "encoding/json"

// tokenizerFile has the fields of tokenizer.json that are read (huggingface/tokenizers, "The tokenization pipeline").
type tokenizerFile struct {
	Added         []addedToken `json:"added_tokens"`
	Normalizer    *component   `json:"normalizer"`
	PreTokenizer  *component   `json:"pre_tokenizer"`
	PostProcessor *component   `json:"post_processor"`
	Decoder       *component   `json:"decoder"`
	Model         struct {
		Type         string          `json:"type"`
		Vocab        json.RawMessage `json:"vocab"`
		Merges       json.RawMessage `json:"merges"`
		Unknown      *int            `json:"unk_id"`
		UnknownToken *string         `json:"unk_token"`
		ByteFallback bool            `json:"byte_fallback"`
		IgnoreMerges bool            `json:"ignore_merges"`
		Prefix       *string         `json:"continuing_subword_prefix"`
		Suffix       *string         `json:"end_of_word_suffix"`
	} `json:"model"`
}

// addedToken is one that is cut out of texts before anything else.
type addedToken struct {
	ID      int    `json:"id"`
	Content string `json:"content"`
	Special bool   `json:"special"`
}

// component is a normalizer, pre-tokenizer, post-processor or decoder; of each type some
// fields.
type component struct {
	Type          string      `json:"type"`
	Normalizers   []component `json:"normalizers"`
	PreTokenizers []component `json:"pretokenizers"`
	Processors    []component `json:"processors"`
	Decoders      []component `json:"decoders"`

	Pattern struct {
		Regex  *string
		String *string
	} `json:"pattern"`
	Content       string `json:"content"`
	Prepend       string `json:"prepend"`
	PrependScheme string `json:"prepend_scheme"`
	Behavior      string `json:"behavior"`
	Invert        bool   `json:"invert"`
	Digits        bool   `json:"individual_digits"`
	UseRegex      *bool  `json:"use_regex"`
	AddSpace      *bool  `json:"add_prefix_space"`
	Charsmap      string `json:"precompiled_charsmap"`
	Lowercase     *bool  `json:"lowercase"`
	StripAccents  *bool  `json:"strip_accents"`
	CleanText     *bool  `json:"clean_text"`
	Ideographs    *bool  `json:"handle_chinese_chars"`

	Single []struct {
		Special *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
	} `json:"single"`
}

// steps returns the components that a sequence of them has.
func (c *component) steps() []component {
	if c == nil {
		return nil
	}
	if c.Type != "Sequence" {
		return []component{*c}
	}
	var all []component
	for _, of := range [][]component{c.Normalizers, c.PreTokenizers, c.Processors, c.Decoders} {
		for i := range of {
			all = append(all, of[i].steps()...)
		}
	}
	return all
}

// step finds a component by its type, nil: there is none.
func (c *component) step(kind string) *component {
	for _, s := range c.steps() {
		if s.Type == kind {
			return &s
		}
	}
	return nil
}
