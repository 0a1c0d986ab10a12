package tokenizer

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/lutra-lm/lutra/models/gguf"
)

// ErrUnsupported is wrapped by the error of New for a tokenizer model or pre-tokenizer
// that this package does not implement.
var ErrUnsupported = errors.New("tokenizer: unsupported model")

// Tokenizer is a vocabulary with its rules. It is immutable.
type Tokenizer struct {
	vocab
	enc      encoder
	special  trie // texts of tokens that are cut out before anything else
	addBOS   bool
	addEOS   bool
	compose  func(string) string // brings plain text into a normal form before it is split into words; nil: nothing does
	warnings []string
}

// Options says which special tokens Encode may produce.
type Options struct {
	AddSpecial   bool // put BOS before and EOS after, where the file asks for them
	ParseSpecial bool // read the texts of control tokens, such as <|im_end|>, as those tokens
	Within       bool // the text goes on from another, so that no space goes before it
}

// encoder turns a run of plain text, free of special tokens, into ids. first
// says that the run begins the text or follows a special token.
type encoder interface {
	encode(out *output, text string, first bool)
}

// New reads the keys tokenizer.ggml.* of a file. Sources: the GGUF
// specification, section "Tokenizer"; Sennrich et al., "Neural Machine
// Translation of Rare Words with Subword Units"; Kudo and Richardson,
// "SentencePiece".
func New(md gguf.Metadata) (*Tokenizer, error) {
	model, ok := md.String("tokenizer.ggml.model")
	if !ok {
		return nil, errors.New("tokenizer: no tokenizer.ggml.model in the file")
	}
	var t Tokenizer
	if err := t.load(md); err != nil {
		return nil, err
	}
	switch model {
	case "gpt2":
		if err := t.newBPE(md); err != nil {
			return nil, err
		}
	case "gemma4":
		if err := t.newCharBPE(md); err != nil {
			return nil, err
		}
	case "llama":
		t.newSPM(md)
	case "bert":
		t.newWordPiece(md)
	case "t5":
		if err := t.newUnigram(md); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%w %q (known are gpt2, gemma4, llama, bert and t5)", ErrUnsupported, model)
	}
	t.findSpecials(md)
	t.lookAround(md)
	return &t, nil
}

// lookAround warns if the file lacks what its other keys rely on.
func (t *Tokenizer) lookAround(md gguf.Metadata) {
	if t.addBOS && t.bos < 0 {
		t.warn("texts should begin with a beginning-of-text token, but the file names none: they do not")
	}
	if t.addEOS && t.eos < 0 {
		t.warn("texts should end with an end-of-text token, but the file names none: they do not")
	}
	if _, typed := md.Ints("tokenizer.ggml.token_type"); !typed {
		t.warn("no tokenizer.ggml.token_type in the file: only well-known special tokens are read as such")
	}
}

// newBPE sets t up for byte-level BPE.
func (t *Tokenizer) newBPE(md gguf.Metadata) error {
	name, given := md.String("tokenizer.ggml.pre")
	if !given {
		name = t.likelyPre()
		t.warn("no tokenizer.ggml.pre in the file: using %q", name)
	}
	pre, known := preTokenizers[name]
	if !known { // another's rules would cut texts differently, and answers be worse without a sign
		return fmt.Errorf("%w: the pre-tokenizer %.64q is not known; a model's metadata may name another's rules as tokenizer.ggml.pre (config.yaml)", ErrUnsupported, name)
	}
	t.compose = composer(md, pre.nfc)
	t.findIDs(md, -1, -1, -1)
	t.addBOS = flag(md, "tokenizer.ggml.add_bos_token", pre.addBOS)
	t.addEOS = flag(md, "tokenizer.ggml.add_eos_token", false)
	merges, err := readMerges(md)
	if err != nil {
		return err
	}
	enc, odd := newBPE(&t.vocab, pre, merges)
	t.warnOfMerges(len(merges), odd)
	if n := enc.missing(); n > 0 {
		t.warn("the vocabulary lacks %d bytes: characters with them are neither read nor written", n)
	}
	t.enc = enc
	t.fillPieces(decodeByteLevel)
	return nil
}

// readMerges reads tokenizer.ggml.merges.
func readMerges(md gguf.Metadata) ([]string, error) {
	merges, ok := md.Strings("tokenizer.ggml.merges")
	if !ok {
		return nil, errors.New("tokenizer: no tokenizer.ggml.merges in the file")
	}
	if len(merges) > maxMerges {
		return nil, fmt.Errorf("tokenizer: %d merges, at most %d are allowed", len(merges), maxMerges)
	}
	if i := slices.IndexFunc(merges, func(s string) bool { return len(s) > 2*maxToken }); i >= 0 {
		return nil, fmt.Errorf("tokenizer: merge %d has %d bytes, at most %d are allowed", i, len(merges[i]), 2*maxToken)
	}
	return merges, nil
}

// warnOfMerges warns if there are none of n, or odd ones.
func (t *Tokenizer) warnOfMerges(n, odd int) {
	if n == 0 {
		t.warn("tokenizer.ggml.merges is empty: most text becomes a token a byte or character")
	}
	if odd > 0 {
		t.warn("%d of %d merges are no pair of symbols, or one that occurred before: they are passed over", odd, n)
	}
}

// likelyPre returns the pre-tokenizer of a vocabulary whose file names none, as
// Microsoft's BitNet b1.58 2B4T does: Llama 3's is known by its tokens.
func (t *Tokenizer) likelyPre() string {
	for _, text := range []string{"<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"} {
		if _, ok := t.ids[text]; !ok {
			return "default"
		}
	}
	return "llama-bpe"
}

// newSPM sets t up for SentencePiece, whose defaults are Llama 2's.
func (t *Tokenizer) newSPM(md gguf.Metadata) {
	t.findIDs(md, 1, 2, 0)
	t.addBOS = flag(md, "tokenizer.ggml.add_bos_token", true)
	t.addEOS = flag(md, "tokenizer.ggml.add_eos_token", false)
	t.stripFirst = flag(md, "tokenizer.ggml.add_space_prefix", true)
	enc := newSPM(&t.vocab)
	enc.spacePrefix = t.stripFirst
	enc.squeeze = flag(md, "tokenizer.ggml.remove_extra_whitespaces", false)
	t.enc = enc
	t.fillPieces(decodeSpaces)
}

// flag reads a boolean of the file, or returns its default.
func flag(md gguf.Metadata, key string, def bool) bool {
	if v, ok := md.Bool(key); ok {
		return v
	}
	return def
}

func (t *Tokenizer) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// Warnings says what New found odd in the file but could work around.
func (t *Tokenizer) Warnings() []string { return slices.Clone(t.warnings) }

// Encode appends the ids of text to dst. Text need not be valid UTF-8. A byte
// for which the vocabulary has no token becomes the unknown token, or nothing
// where the file names none.
func (t *Tokenizer) Encode(dst []int32, text string, opt Options) []int32 {
	out := output{ids: dst}
	t.encode(&out, text, opt)
	return out.ids
}

// Runs encodes texts of any length: it yields the ids in runs of a few
// thousand, each valid until the next, and holds no more than one of them.
func (t *Tokenizer) Runs(text string, opt Options) iter.Seq[[]int32] {
	return func(yield func([]int32) bool) {
		out := output{take: yield}
		t.encode(&out, text, opt)
		out.flush()
	}
}

func (t *Tokenizer) encode(out *output, text string, opt Options) {
	if opt.AddSpecial && t.addBOS && t.bos >= 0 {
		out.ids = append(out.ids, t.bos)
	}
	first := !opt.Within
	for lo := 0; lo < len(text) && out.pause(); {
		at, id := t.special.next(text, lo, opt.ParseSpecial)
		if at > lo {
			plain := text[lo:at]
			if t.compose != nil {
				plain = t.compose(plain)
			}
			t.enc.encode(out, plain, first)
			first = false
		}
		if id < 0 {
			break
		}
		out.ids = append(out.ids, id)
		first = true
		lo = at + len(t.tokens[id])
		if t.kinds[id]&stripsRight != 0 {
			lo = skipSpace(text, lo)
		}
	}
	if opt.AddSpecial && t.addEOS && t.eos >= 0 {
		out.ids = append(out.ids, t.eos)
	}
}

// skipSpace returns the first index from i on that holds no ASCII white space.
func skipSpace(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || '\t' <= text[i] && text[i] <= '\r') {
		i++
	}
	return i
}
