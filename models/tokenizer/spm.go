package tokenizer

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// spaceMark stands for a space in SentencePiece's pieces.
const (
	spaceMark     = string(spaceMarkRune)
	spaceMarkRune = '▁'
)

// spm is SentencePiece's BPE: neighbours merge into the token of the highest
// score; a character without a token falls back to its bytes.
type spm struct {
	vocab       *vocab
	order       []int32    // of each token: how many distinct scores are higher
	bytes       [256]int32 // token of each byte, -1 for none
	longest     int        // bytes of the longest token
	spacePrefix bool       // a space goes before text that begins a sequence or follows a special token
	squeeze     bool       // runs of spaces count as one, those at the ends as none
	divides     bool       // no token has a space after anything else: words that begin with spaces never merge
	chains      sync.Pool  // of *chain
}

// newSPM ranks v's tokens by score; without scores all are equal.
func newSPM(v *vocab) *spm {
	e := &spm{vocab: v, order: make([]int32, len(v.tokens)), divides: true, bytes: byteTokens(v)}
	e.chains.New = func() any { return new(chain) }
	for _, text := range v.tokens {
		e.longest = max(e.longest, len(text))
		e.divides = e.divides && !strings.Contains(strings.TrimLeft(text, spaceMark), spaceMark)
	}
	if v.scores == nil {
		return e
	}
	byScore := make([]int32, len(v.tokens))
	for i := range byScore {
		byScore[i] = int32(i)
	}
	slices.SortFunc(byScore, func(a, b int32) int { return cmp.Compare(v.scores[b], v.scores[a]) })
	for n, id := range byScore[1:] {
		higher := byScore[n]
		e.order[id] = e.order[higher]
		if v.scores[id] < v.scores[higher] {
			e.order[id]++
		}
	}
	return e
}

func (e *spm) encode(out *output, text string, first bool) {
	if e.squeeze {
		text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' }), " ")
	}
	if e.spacePrefix && first {
		text = " " + text
	}
	c := e.chains.Get().(*chain)
	defer c.put(&e.chains)
	for text != "" && out.pause() {
		word := cut(text[:e.wordEnd(text)])
		text = text[len(word):]
		out.ids = e.word(out.ids, c, strings.ReplaceAll(word, " ", spaceMark))
	}
}

// wordEnd returns the end of what text begins with and never merges with what
// follows: spaces and then anything else, where tokens allow.
func (e *spm) wordEnd(text string) int {
	if !e.divides {
		return len(text)
	}
	text = text[:min(len(text), longestWord+utf8.UTFMax)] // longer ones are cut anyway
	begun := false                                        // after the spaces
	for i, r := range text {
		space := r == ' ' || r == spaceMarkRune
		if space && begun {
			return i
		}
		begun = begun || !space
	}
	return len(text)
}

// word appends the tokens of one word, or of a whole text.
func (e *spm) word(dst []int32, c *chain, text string) []int32 {
	c.reset(utf8.RuneCountInString(text))
	for i := 0; i < len(text); {
		_, n := utf8.DecodeRuneInString(text[i:])
		id, ok := e.vocab.plain[text[i:i+n]]
		if !ok {
			id = -1
		}
		c.add(i, n, id)
		i += n
	}
	if len(c.symbols) == 0 {
		return dst
	}
	c.merge(func(a, b *symbol) (key, id int32, ok bool) {
		size := a.size + b.size
		if int(size) > e.longest {
			return 0, 0, false
		}
		id, ok = e.vocab.plain[text[a.start:a.start+size]]
		if !ok {
			return 0, 0, false
		}
		return e.order[id], id, true
	})
	for i := int32(0); i >= 0; i = c.symbols[i].next {
		s := &c.symbols[i]
		if s.id >= 0 {
			dst = append(dst, s.id)
			continue
		}
		dst = e.vocab.appendBytes(dst, &e.bytes, text[s.start:s.start+s.size])
	}
	return dst
}
