package huggingface

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// The kinds of tokens, of the GGUF specification.
const (
	normalToken  int32 = 1
	unknownToken int32 = 2
	controlToken int32 = 3
	userToken    int32 = 4
	unusedToken  int32 = 5
	byteToken    int32 = 6
)

// spaceMark stands for a space in SentencePiece.
const spaceMark = "▁"

// maxTokens bounds a vocabulary, as package tokenizer does.
const maxTokens = 1 << 22

// vocab is the vocabulary of a tokenizer.json.
type vocab struct {
	tokenizerFile
	md     gguf.Metadata // gets the keys
	rows   int           // of the embedding
	tokens []string      // by id
	kinds  []int32
	ids    map[string]int
}

// tokenizer makes tokenizer.ggml.* of tokenizer.json and the files beside it.
func (b *builder) tokenizer() {
	text, ok := b.text(fileTokenizer, maxTokenizer)
	if !ok {
		b.fail("%s is missing: tokenizers are read from no other file, not from tokenizer.model either", fileTokenizer)
		return
	}
	v := vocab{md: b.md, rows: b.rows(), ids: map[string]int{}}
	if err := json.Unmarshal(text, &v.tokenizerFile); err != nil {
		b.fail("%s: %w", fileTokenizer, err)
		return
	}
	var err error
	switch m := &v.Model; {
	case m.Type == "WordPiece":
		err = v.wordPiece()
	case m.Prefix != nil && *m.Prefix != "" || m.Suffix != nil && *m.Suffix != "":
		err = fmt.Errorf("model: %w: continuing_subword_prefix or end_of_word_suffix", ErrUnsupported)
	case m.Type == "BPE" && v.byteLevel():
		err = v.mergeBytes()
	case m.Type == "BPE" && m.ByteFallback:
		err = v.sentencePiece()
	case m.Type == "Unigram":
		err = v.unigram()
	case m.Type == "BPE":
		err = fmt.Errorf("model: %w: BPE of characters, neither of bytes nor with byte_fallback", ErrUnsupported)
	default:
		err = fmt.Errorf("model.type %.40q: %w: it is neither BPE, Unigram nor WordPiece", m.Type, ErrUnsupported)
	}
	if err != nil {
		b.fail("%s: %w", fileTokenizer, err)
		return
	}
	b.md["tokenizer.ggml.tokens"], b.md["tokenizer.ggml.token_type"] = v.tokens, v.kinds
	tokens := b.read(fileTokens, false)
	generation := b.read(fileGeneration, false)
	v.specials(&b.config, &tokens)
	v.ends(&b.config, &generation)
	b.sampling(&generation)
	v.bounds(&tokens, b.arch.encoder)
	b.template(&tokens)
}

// byteLevel tells whether merges are of bytes.
func (v *vocab) byteLevel() bool {
	return v.PreTokenizer.step("ByteLevel") != nil || v.Decoder.step("ByteLevel") != nil
}

// rows returns how many tokens the embedding has.
func (o *output) rows() int {
	for i := range o.tensors {
		if o.tensors[i].Name == "token_embd.weight" {
			return o.tensors[i].Rows()
		}
	}
	return 0
}

// fill makes the list of tokens of their ids. Rows of the embedding without a token are padding.
func (v *vocab) fill(ids map[string]int) error {
	n := v.rows
	if n == 0 || n > maxTokens {
		return fmt.Errorf("the embedding has %d rows, want 1 to %d", n, maxTokens)
	}
	v.tokens, v.kinds = make([]string, n), make([]int32, n)
	put := func(text string, id int, kind int32) error {
		if id < 0 || id >= n {
			return fmt.Errorf("token %.64q has the id %d, the embedding %d rows", text, id, n)
		}
		if old := v.tokens[id]; v.kinds[id] != 0 && old != text {
			return fmt.Errorf("tokens %.64q and %.64q have the same id %d", old, text, id)
		}
		v.tokens[id], v.kinds[id], v.ids[text] = text, kind, id
		return nil
	}
	for text, id := range ids {
		if err := put(text, id, normalToken); err != nil {
			return err
		}
	}
	for _, t := range v.Added {
		kind := userToken
		if _, ordinary := ids[t.Content]; t.Special || looksSpecial(t.Content) {
			kind = controlToken
		} else if ordinary && strings.Contains(t.Content, spaceMark) {
			kind = normalToken // which merges make of spaces
		}
		if err := put(t.Content, t.ID, kind); err != nil {
			return err
		}
	}
	for id, kind := range v.kinds {
		if kind == 0 {
			v.tokens[id], v.kinds[id] = fmt.Sprintf("[PAD%d]", id), unusedToken
		}
	}
	return nil
}

// looksSpecial knows tokens that steer models though their files call them ordinary, as
// llama.cpp's converter does.
func looksSpecial(text string) bool {
	between := func(begin, end string) bool { return strings.HasPrefix(text, begin) && strings.HasSuffix(text, end) }
	switch text {
	case "<pad>", "<mask>", "<2mass>", "[@BOS@]":
		return true
	}
	return between("<|", "|>") || between("<｜", "｜>") || between("<unused", ">")
}

// mergeBytes makes the keys of byte-level BPE.
func (v *vocab) mergeBytes() error {
	ids := map[string]int{}
	if err := decode(v.Model.Vocab, &ids, "model.vocab"); err != nil {
		return err
	}
	if err := v.fill(ids); err != nil {
		return err
	}
	merges, err := v.merges()
	if err != nil {
		return err
	}
	joined := make([]string, len(merges))
	for i, m := range merges {
		if strings.Contains(m[0], " ") || strings.Contains(m[1], " ") {
			return fmt.Errorf("model.merges: %w: number %d has a space", ErrUnsupported, i)
		}
		joined[i] = m[0] + " " + m[1]
	}
	composes, compatible := false, false
	for _, s := range v.Normalizer.steps() {
		switch s.Type {
		case "NFC":
			composes = true
		case "NFKC":
			compatible = true
		default:
			return fmt.Errorf("normalizer %.40q: %w: of byte-level BPE only NFC and NFKC are read", s.Type, ErrUnsupported)
		}
	}
	patterns, err := v.patterns()
	if err != nil {
		return err
	}
	pre, ok := tokenizer.PreTokenizer(patterns, v.Model.IgnoreMerges)
	if !ok { // the tokenizer refuses it by this name, unless the user gives another
		pre = strings.Join(patterns, " then ")
	}
	v.md["tokenizer.ggml.model"], v.md["tokenizer.ggml.pre"] = "gpt2", pre
	v.md["tokenizer.ggml.merges"], v.md["lutra.tokenizer.nfc"] = joined, composes
	if compatible {
		v.md["lutra.tokenizer.nfkc"] = true
	}
	return nil
}

// patterns returns how texts are cut before merging.
func (v *vocab) patterns() (patterns []string, err error) {
	for _, s := range v.PreTokenizer.steps() {
		switch {
		case s.Type == "Split" && s.Pattern.Regex != nil && (s.Behavior == "Isolated" && !s.Invert || s.Behavior == "Removed" && s.Invert):
			patterns = append(patterns, *s.Pattern.Regex)
		case s.Type == "Digits" && s.Digits:
			patterns = append(patterns, `\p{N}`)
		case s.Type == "ByteLevel" && s.AddSpace != nil && *s.AddSpace:
			return nil, fmt.Errorf("pre_tokenizer: ByteLevel: add_prefix_space: %w", ErrUnsupported)
		case s.Type == "ByteLevel" && (s.UseRegex == nil || *s.UseRegex):
			patterns = append(patterns, tokenizer.GPT2)
		case s.Type == "ByteLevel":
		default:
			return nil, fmt.Errorf("pre_tokenizer %.40q (behavior %.40q): %w", s.Type, s.Behavior, ErrUnsupported)
		}
	}
	return patterns, nil
}

// merges reads model.merges: pairs, or in older files texts with a space between two parts.
func (v *vocab) merges() (pairs [][2]string, err error) {
	var list []json.RawMessage
	if err := decode(v.Model.Merges, &list, "model.merges"); err != nil {
		return nil, err
	}
	if len(list) > maxTokens {
		return nil, fmt.Errorf("model.merges has %d, at most %d are allowed", len(list), maxTokens)
	}
	pairs = make([][2]string, len(list))
	for i, raw := range list {
		if bytes.HasPrefix(raw, []byte("[")) {
			var two []string
			if err := json.Unmarshal(raw, &two); err != nil || len(two) != 2 {
				return nil, fmt.Errorf("model.merges: number %d is no pair of texts", i)
			}
			pairs[i] = [2]string{two[0], two[1]}
			continue
		}
		var text string
		err := json.Unmarshal(raw, &text)
		first, second, ok := strings.Cut(text, " ")
		if err != nil || !ok {
			return nil, fmt.Errorf("model.merges: number %d is no pair of texts", i)
		}
		pairs[i] = [2]string{first, second}
	}
	return pairs, nil
}

// sentencePiece makes the keys of SentencePiece's BPE. Its tokens have scores, and the best pair is
// merged first; tokenizer.json has the pairs in that order.
func (v *vocab) sentencePiece() error {
	ids := map[string]int{}
	if err := decode(v.Model.Vocab, &ids, "model.vocab"); err != nil {
		return err
	}
	if err := v.fill(ids); err != nil {
		return err
	}
	merges, err := v.merges()
	if err != nil {
		return err
	}
	scores := make([]float32, len(v.tokens))
	for i := range scores {
		scores[i] = float32(-len(merges) - 1) // of tokens that are no pair
	}
	seen := make([]bool, len(v.tokens))
	for rank, m := range merges {
		if id, ok := v.ids[m[0]+m[1]]; ok && !seen[id] {
			scores[id], seen[id] = float32(-rank), true
		}
	}
	for text, id := range ids {
		if len(text) == 6 && strings.HasPrefix(text, "<0x") && text[5] == '>' {
			v.kinds[id] = byteToken
		}
	}
	if t := v.Model.UnknownToken; t != nil {
		if id, ok := v.ids[*t]; ok {
			v.kinds[id] = unknownToken
		}
	}
	prefix, squeeze, err := v.spaces()
	if err != nil {
		return err
	}
	v.md["tokenizer.ggml.model"], v.md["tokenizer.ggml.pre"], v.md["tokenizer.ggml.scores"] = "llama", "default", scores
	v.md["tokenizer.ggml.add_space_prefix"], v.md["tokenizer.ggml.remove_extra_whitespaces"] = prefix, squeeze
	return nil
}

// spaces tells whether texts get a space ahead, and whether runs of spaces count as one.
func (v *vocab) spaces() (prefix, squeeze bool, err error) {
	for _, s := range v.Normalizer.steps() {
		switch {
		case s.Type == "Prepend" && s.Prepend == spaceMark:
			prefix = true
		case s.Type == "Replace" && s.Pattern.String != nil && *s.Pattern.String == " " && s.Content == spaceMark:
		case s.Type == "Replace" && s.Pattern.Regex != nil && *s.Pattern.Regex == " {2,}" && (s.Content == " " || s.Content == spaceMark):
			squeeze = true
		case s.Type == "Strip", s.Type == "Precompiled" && v.Model.Type == "Unigram":
		default:
			return false, false, fmt.Errorf("normalizer %.40q: %w", s.Type, ErrUnsupported)
		}
	}
	for _, s := range v.PreTokenizer.steps() {
		switch {
		case s.Type == "Metaspace":
			prefix = prefix || cmp.Or(s.PrependScheme, "always") != "never" && (s.AddSpace == nil || *s.AddSpace)
		case s.Type == "WhitespaceSplit":
			squeeze = true
		case s.Type == "Split" && s.Pattern.String != nil && *s.Pattern.String == " ": // words end there anyway
		default:
			return false, false, fmt.Errorf("pre_tokenizer %.40q: %w", s.Type, ErrUnsupported)
		}
	}
	return prefix, squeeze, nil
}

// unigram makes the keys of SentencePiece's unigrams.
func (v *vocab) unigram() error {
	var list [][2]any
	if err := decode(v.Model.Vocab, &list, "model.vocab"); err != nil {
		return err
	}
	ids, scores := map[string]int{}, make([]float32, v.rows)
	for i, entry := range list {
		text, isText := entry[0].(string)
		score, isNumber := entry[1].(float64)
		if _, twice := ids[text]; !isText || !isNumber || twice || i >= len(scores) {
			return fmt.Errorf("model.vocab: number %d is no new token with a score, or beyond the %d rows of the embedding", i, len(scores))
		}
		ids[text], scores[i] = i, float32(score)
	}
	if err := v.fill(ids); err != nil {
		return err
	}
	if id := v.Model.Unknown; id != nil && *id >= 0 && *id < len(v.kinds) {
		v.kinds[*id] = unknownToken
		v.md["tokenizer.ggml.unknown_token_id"] = uint32(*id)
	}
	prefix, squeeze, err := v.spaces()
	if err != nil {
		return err
	}
	if rules := v.Normalizer.step("Precompiled"); rules != nil {
		raw, err := base64.StdEncoding.DecodeString(rules.Charsmap)
		if err != nil {
			return fmt.Errorf("normalizer: precompiled_charsmap: %w", err)
		}
		v.md["tokenizer.ggml.precompiled_charsmap"] = raw
	}
	v.md["tokenizer.ggml.model"], v.md["tokenizer.ggml.scores"] = "t5", scores
	v.md["tokenizer.ggml.add_space_prefix"], v.md["tokenizer.ggml.remove_extra_whitespaces"] = prefix, squeeze
	return nil
}

// continued begins pieces that continue a word.
const continued = "##"

// wordPiece makes the keys of BERT's WordPiece, of whose pieces those that begin a word are marked in
// place of the others.
func (v *vocab) wordPiece() error {
	ids := map[string]int{}
	if err := decode(v.Model.Vocab, &ids, "model.vocab"); err != nil {
		return err
	}
	if err := v.fill(ids); err != nil {
		return err
	}
	if p := v.Model.Prefix; p != nil && *p != continued {
		return fmt.Errorf("model.continuing_subword_prefix %.40q: %w: only %s is read", *p, ErrUnsupported, continued)
	}
	n, cut := v.Normalizer, v.PreTokenizer
	if n == nil || n.Type != "BertNormalizer" || cut == nil || cut.Type != "BertPreTokenizer" {
		return fmt.Errorf("normalizer and pre_tokenizer: %w: of WordPiece only BERT's are read", ErrUnsupported)
	}
	yes := func(x *bool, otherwise bool) bool { return x == nil && otherwise || x != nil && *x }
	if !yes(n.CleanText, true) || !yes(n.Ideographs, true) {
		return fmt.Errorf("normalizer: %w: clean_text and handle_chinese_chars must be true", ErrUnsupported)
	}
	lower := yes(n.Lowercase, true)
	v.md["tokenizer.ggml.normalizer.lowercase"], v.md["tokenizer.ggml.normalizer.strip_accents"] = lower, yes(n.StripAccents, lower)
	for id, text := range v.tokens {
		switch rest, inWord := strings.CutPrefix(text, continued); {
		case v.kinds[id] == controlToken || v.kinds[id] == unusedToken:
		case inWord:
			v.tokens[id] = rest
		default:
			v.tokens[id] = spaceMark + text
		}
	}
	v.md["tokenizer.ggml.model"], v.md["tokenizer.ggml.pre"] = "bert", "default"
	return nil
}

// decode reads a part of tokenizer.json; what names it in errors.
func decode(raw json.RawMessage, into any, what string) error {
	if len(raw) == 0 {
		return fmt.Errorf("%s is missing", what)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
