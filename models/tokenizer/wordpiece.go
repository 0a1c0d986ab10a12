package tokenizer

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/lutra-lm/lutra/models/gguf"
)

// wordPiece is the encoder of BERT (Devlin et al. 2019, §3; Schuster and Nakajima 2012). Unless the file says
// otherwise, text is put into lower case without accents. It is divided into words and punctuation marks, and each word
// into the longest pieces of the vocabulary, from the left. A word that cannot be divided so is the unknown token.
// Pieces that begin a word have spaceMark ahead, as llama.cpp's converter writes them.
type wordPiece struct {
	vocab   *vocab
	longest int // bytes of a piece
	lower   bool
	strip   bool // of accents
}

// maxWord bounds the characters of a word; a longer one is unknown.
const maxWord = 100

// newWordPiece sets t up for WordPiece. A text stands between [CLS] and [SEP].
func (t *Tokenizer) newWordPiece(md gguf.Metadata) {
	t.findIDs(md, 101, 102, 100)
	unknown := t.unk // a control token in some files, and still what unknown words become
	id := func(name string, otherwise int32) int32 {
		if n, ok := md.Int("tokenizer.ggml." + name + "_token_id"); ok && n >= 0 && n < len(t.tokens) {
			return int32(n)
		}
		return otherwise
	}
	if unknown < 0 {
		if unknown = id("unknown", 100); int(unknown) >= len(t.tokens) {
			unknown = -1
		}
	}
	t.unk = unknown
	t.bos = id("cls", t.bos)
	t.sep = id("seperator", id("separator", t.eos)) // the specification's spelling, and the right one
	t.eos = t.sep
	t.addBOS = flag(md, "tokenizer.ggml.add_bos_token", true)
	t.addEOS = flag(md, "tokenizer.ggml.add_eos_token", flag(md, "tokenizer.ggml.add_sep_token", true))
	enc := &wordPiece{vocab: &t.vocab, lower: flag(md, "tokenizer.ggml.normalizer.lowercase", true)}
	enc.strip = flag(md, "tokenizer.ggml.normalizer.strip_accents", enc.lower)
	for text := range t.plain {
		enc.longest = max(enc.longest, len(text))
	}
	t.enc, t.stripFirst = enc, true
	t.fillPieces(decodeSpaces)
}

// encode implements encoder. A word is cut off where it gets longer than any that has
// pieces.
func (w *wordPiece) encode(out *output, text string, _ bool) {
	var word strings.Builder
	n := 0 // characters of word
	end := func() {
		if n > 0 {
			w.encodeWord(out, word.String(), n)
			word.Reset()
			n = 0
		}
	}
	for r := range w.characters(text) {
		switch {
		case r == '\t' || r == '\n' || r == '\r' || unicode.Is(unicode.Z, r):
			end()
			if !out.pause() {
				return
			}
		case r == 0 || r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) || w.strip && unicode.Is(unicode.Mn, r):
		case stands(r):
			end()
			w.encodeWord(out, string(r), 1)
			if !out.pause() {
				return
			}
		default:
			if n++; n > maxWord {
				break
			}
			if w.lower {
				word.WriteString(strings.ToLower(string(r)))
			} else {
				word.WriteRune(r)
			}
		}
	}
	end()
}

// characters returns the characters of a text; where accents are dropped, in normal form D, which
// takes them off their letters.
func (w *wordPiece) characters(text string) iter.Seq[rune] {
	return func(yield func(rune) bool) {
		if !w.strip {
			for _, r := range text {
				if !yield(r) {
					return
				}
			}
			return
		}
		var it norm.Iter
		for it.InitString(norm.NFD, strings.ToValidUTF8(text, "\ufffd")); !it.Done(); {
			for part := it.Next(); len(part) > 0; {
				r, size := utf8.DecodeRune(part)
				part = part[size:]
				if !yield(r) {
					return
				}
			}
		}
	}
}

// stands tells whether a character is a word by itself: punctuation, all ASCII symbols,
// and ideographs.
func stands(r rune) bool {
	if r < 0x80 {
		return r > ' ' && !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
	}
	return unicode.IsPunct(r) || ideograph(r)
}

// ideograph tells whether r is in one of the blocks that BERT's tokeniser lists.
func ideograph(r rune) bool {
	for _, block := range [][2]rune{
		{0x4e00, 0x9fff}, {0x3400, 0x4dbf}, {0x20000, 0x2a6df}, {0x2a700, 0x2b73f},
		{0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf}, {0xf900, 0xfaff}, {0x2f800, 0x2fa1f},
	} {
		if block[0] <= r && r <= block[1] {
			return true
		}
	}
	return false
}

// encodeWord divides a word of n characters into pieces.
func (w *wordPiece) encodeWord(out *output, word string, n int) {
	begun := len(out.ids)
	word = spaceMark + word
	for len(word) > 0 && n <= maxWord {
		size := min(len(word), w.longest)
		id, ok := w.vocab.plain[word[:size]]
		for ; !ok && size > 0; id, ok = w.vocab.plain[word[:size]] {
			size--
		}
		if !ok || size == 0 {
			break
		}
		out.ids = append(out.ids, id)
		word = word[size:]
	}
	if len(word) > 0 {
		out.ids = out.ids[:begun]
		if w.vocab.unk >= 0 {
			out.ids = append(out.ids, w.vocab.unk)
		}
	}
}
