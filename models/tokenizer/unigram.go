package tokenizer

import (
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/models/gguf"
)

// unigram is SentencePiece's unigram model (Kudo 2018, "Subword Regularization", §3.1). Of all ways to divide a word
// into tokens it takes the one whose scores, logarithms of probabilities, have the largest sum. It is the tokenizer of
// XLM-RoBERTa and T5.
type unigram struct {
	vocab       *vocab
	rules       charsmap         // that texts are normalised by
	lengths     map[rune][]int32 // bytes that tokens with that first character have, ascending
	unknown     float64          // score of a character without a token
	spacePrefix bool             // a space goes before text that begins a sequence or follows a special token
	squeeze     bool             // runs of white space count as one, those at the ends as none
	divides     bool             // no token has a space after anything else: words are divided one by one
	paths       sync.Pool        // of *[]node
}

// node is the best way to an end within a word.
type node struct {
	score float64 // sum of its tokens
	from  int32   // where its last token begins
	id    int32   // of that token; -1: unknown
}

// unknownPenalty is by how much the score of an unknown character is below the least of
// all tokens, as in SentencePiece.
const unknownPenalty = 10

// newUnigram sets t up for it, whose defaults are T5's.
func (t *Tokenizer) newUnigram(md gguf.Metadata) error {
	rules, err := readCharsmap(md)
	if err != nil {
		return err
	}
	t.findIDs(md, -1, 1, 2)
	t.addBOS = flag(md, "tokenizer.ggml.add_bos_token", t.bos >= 0)
	t.addEOS = flag(md, "tokenizer.ggml.add_eos_token", true)
	t.stripFirst = flag(md, "tokenizer.ggml.add_space_prefix", true)
	e := &unigram{
		vocab: &t.vocab, rules: rules, lengths: map[rune][]int32{}, spacePrefix: t.stripFirst,
		squeeze: flag(md, "tokenizer.ggml.remove_extra_whitespaces", true), divides: true,
	}
	e.paths.New = func() any { return new([]node) }
	if t.scores == nil {
		t.warn("no tokenizer.ggml.scores in the file: all ways to divide a word are as good")
		t.scores = make([]float32, len(t.tokens))
	}
	for text, id := range t.plain {
		first, _ := utf8.DecodeRuneInString(text)
		sizes := e.lengths[first]
		if at, found := slices.BinarySearch(sizes, int32(len(text))); !found {
			e.lengths[first] = slices.Insert(sizes, at, int32(len(text)))
		}
		e.divides = e.divides && !strings.Contains(strings.TrimLeft(text, spaceMark), spaceMark)
		if t.kinds[id]&unused == 0 {
			e.unknown = min(e.unknown, e.score(id))
		}
	}
	e.unknown -= unknownPenalty
	t.enc = e
	t.fillPieces(decodeSpaces)
	return nil
}

// score returns the score of a token; one that is none counts as the worst there could be.
func (e *unigram) score(id int32) float64 {
	if e.vocab.kinds[id]&userDefined != 0 {
		return 0 // the best: scores are logarithms
	}
	if x := float64(e.vocab.scores[id]); x-x == 0 {
		return x
	}
	return -math.MaxFloat32
}

// encode implements encoder.
func (e *unigram) encode(out *output, text string, first bool) {
	text = e.rules.normalise(text)
	if e.squeeze {
		text = strings.Join(strings.FieldsFunc(text, unicode.IsSpace), " ")
	}
	if e.spacePrefix && first && text != "" {
		text = " " + text
	}
	text = strings.ReplaceAll(text, " ", spaceMark)
	for begin := 0; begin < len(text); {
		end := len(text)
		if e.divides {
			end = wordEnd(text, begin)
		}
		if !e.wordInPieces(out, text[begin:end]) {
			return
		}
		begin = end
	}
}

// wordEnd returns where the word from begin on ends: marks, and then anything else.
func wordEnd(text string, begin int) int {
	inside := false
	for i, r := range text[begin:] {
		if r == spaceMarkRune && inside {
			return begin + i
		}
		inside = inside || r != spaceMarkRune
	}
	return len(text)
}

// wordInPieces encodes a word, in pieces if it is too long, and tells whether to go on.
func (e *unigram) wordInPieces(out *output, word string) bool {
	for word != "" {
		piece := cut(word)
		e.word(out, piece)
		if word = word[len(piece):]; !out.pause() {
			return false
		}
	}
	return true
}

// word appends the tokens of a word. Characters without tokens that follow one another
// are one unknown token.
func (e *unigram) word(out *output, word string) {
	path := e.paths.Get().(*[]node)
	defer e.paths.Put(path)
	best := append((*path)[:0], make([]node, len(word)+1)...)
	*path = best
	for i := range best[1:] {
		best[i+1].score = math.Inf(-1)
	}
	reach := func(from, end int, id int32, score float64) {
		if score += best[from].score; score > best[end].score {
			best[end] = node{score, int32(from), id}
		}
	}
	for i, r := range word {
		size, alone := max(1, runeSize(word[i:])), false
		for _, n := range e.lengths[r] {
			end := i + int(n)
			if end > len(word) {
				break
			}
			if id, ok := e.vocab.plain[word[i:end]]; ok {
				reach(i, end, id, e.score(id))
				alone = alone || int(n) == size
			}
		}
		if !alone {
			reach(i, i+size, -1, e.unknown)
		}
	}
	begun := len(out.ids)
	for end, unknown := len(word), false; end > 0; end = int(best[end].from) {
		id := best[end].id
		if id >= 0 {
			out.ids = append(out.ids, id)
		} else if !unknown && e.vocab.unk >= 0 {
			out.ids = append(out.ids, e.vocab.unk)
		}
		unknown = id < 0
	}
	slices.Reverse(out.ids[begun:])
}

// runeSize returns the bytes of a text's first character.
func runeSize(text string) int {
	_, n := utf8.DecodeRuneInString(text)
	return n
}
