package tokenizer

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/models/gguf"
)

// charBPE is byte-pair encoding whose symbols are characters, as in Gemma 4. A space is written ▁, words are lines,
// and a character without a token falls back to its bytes.
type charBPE struct {
	vocab  *vocab
	pairs  mergeTable
	bytes  [256]int32 // token of each byte, -1 for none
	chains sync.Pool  // of *chain
}

// newCharBPE sets t up for it.
func (t *Tokenizer) newCharBPE(md gguf.Metadata) error {
	merges, err := readMerges(md)
	if err != nil {
		return err
	}
	t.findIDs(md, -1, -1, -1)
	t.addBOS = true // whatever old files say
	t.addEOS = flag(md, "tokenizer.ggml.add_eos_token", false)
	e := &charBPE{vocab: &t.vocab, bytes: byteTokens(&t.vocab)}
	e.chains.New = func() any { return new(chain) }
	odd := 0
	e.pairs, odd = newMergeTable(&t.vocab, merges)
	t.warnOfMerges(len(merges), odd)
	t.enc = e
	t.fillPieces(decodeSpaces)
	return nil
}

func (e *charBPE) encode(out *output, text string, _ bool) {
	c := e.chains.Get().(*chain)
	defer c.put(&e.chains)
	for text != "" && out.pause() {
		word := cut(text[:lineEnd(text[:min(len(text), longestWord+utf8.UTFMax)])])
		text = text[len(word):]
		out.ids = e.word(out.ids, c, strings.ReplaceAll(word, " ", spaceMark))
	}
}

// lineEnd returns the end of the line, or of the line feeds, that text begins with.
func lineEnd(text string) int {
	feeds := text[0] == '\n'
	for i := range len(text) {
		if (text[i] == '\n') != feeds {
			return i
		}
	}
	return len(text)
}

// word appends the tokens of a line, or of line feeds, which no merge may make.
func (e *charBPE) word(dst []int32, c *chain, word string) []int32 {
	if id, ok := e.vocab.plain[word]; ok && word[0] == '\n' {
		return append(dst, id)
	}
	c.reset(utf8.RuneCountInString(word))
	for i := 0; i < len(word); {
		_, n := utf8.DecodeRuneInString(word[i:])
		c.add(i, n, e.pairs.symbol(word[i:i+n]))
		i += n
	}
	c.merge(e.pairs.find)
	for i := int32(0); i >= 0; i = c.symbols[i].next {
		if s := &c.symbols[i]; e.vocab.valid(s.id) {
			dst = append(dst, s.id)
		} else {
			dst = e.vocab.appendBytes(dst, &e.bytes, word[s.start:s.start+s.size])
		}
	}
	return dst
}
