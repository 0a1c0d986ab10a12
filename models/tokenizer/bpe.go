package tokenizer

import (
	"strings"
	"sync"
)

// alphabet writes each byte as one printable character, GPT-2's way: printable
// Latin-1 stands for itself, the rest are numbered from U+0100 on (Radford et
// al., "Language Models are Unsupervised Multitask Learners" §2.2).
// alphabetByte is its inverse.
var alphabet, alphabetByte = byteAlphabet()

func byteAlphabet() (chars [256]string, bytes map[rune]byte) {
	bytes = make(map[rune]byte, 256)
	extra := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r = extra
			extra++
		}
		chars[b] = string(r)
		bytes[r] = byte(b)
	}
	return chars, bytes
}

// merge is what a pair of symbols becomes.
type merge struct{ rank, id int32 }

// bpe is byte-level byte-pair encoding. A symbol is a token's id, or a number
// from the vocabulary's size on for a string that only merges mention.
type bpe struct {
	vocab  *vocab
	pre    preTokenizer
	bytes  [256]int32       // symbol of each byte, -1 for none
	merges map[uint64]merge // left<<32 | right
	chains sync.Pool        // of *chain
}

// newBPE also counts the merges that are no pair of symbols, or repeat one.
func newBPE(v *vocab, pre preTokenizer, merges []string) (e *bpe, odd int) {
	e = &bpe{vocab: v, pre: pre, merges: make(map[uint64]merge, len(merges))}
	e.chains.New = func() any { return new(chain) }
	extra := make(map[string]int32)
	number := func(text string) int32 {
		if id, ok := v.plain[text]; ok {
			return id
		}
		id, ok := extra[text]
		if !ok {
			id = int32(len(v.tokens) + len(extra))
			extra[text] = id
		}
		return id
	}
	for b, char := range alphabet {
		e.bytes[b] = number(char)
	}
	for rank, m := range merges {
		// The first character may itself be a space.
		cut := strings.IndexByte(m[min(1, len(m)):], ' ') + 1
		if cut <= 0 {
			odd++
			continue
		}
		left, right := m[:cut], m[cut+1:]
		key := uint64(number(left))<<32 | uint64(number(right))
		if _, dup := e.merges[key]; dup {
			odd++
			continue
		}
		e.merges[key] = merge{int32(rank), number(left + right)}
	}
	return e, odd
}

// missing returns the number of bytes that no token can express.
func (e *bpe) missing() (n int) {
	for _, id := range e.bytes {
		if !e.vocab.valid(id) {
			n++
		}
	}
	return n
}

func (e *bpe) encode(out *output, text string, _ bool) {
	c := e.chains.Get().(*chain)
	defer c.put(&e.chains)
	e.pre.split(text, func(word string) {
		for word != "" && out.pause() {
			piece := cut(word)
			out.ids = e.word(out.ids, c, piece)
			word = word[len(piece):]
		}
	})
}

// word appends the tokens of one word.
func (e *bpe) word(dst []int32, c *chain, word string) []int32 {
	if e.pre.wholeWords {
		if id, ok := e.whole(word); ok {
			return append(dst, id)
		}
	}
	c.reset(len(word))
	for i := range len(word) {
		c.add(i, 1, e.bytes[word[i]])
	}
	c.merge(e.find)
	for i := int32(0); i >= 0; i = c.symbols[i].next {
		s := &c.symbols[i]
		if e.vocab.valid(s.id) {
			dst = append(dst, s.id)
			continue
		}
		for _, b := range []byte(word[s.start : s.start+s.size]) {
			if id := e.bytes[b]; e.vocab.valid(id) {
				dst = append(dst, id)
			} else if e.vocab.unk >= 0 {
				dst = append(dst, e.vocab.unk)
			}
		}
	}
	return dst
}

func (e *bpe) find(a, b *symbol) (key, id int32, ok bool) {
	m, ok := e.merges[uint64(a.id)<<32|uint64(b.id)]
	return m.rank, m.id, ok
}

// longestWhole bounds, in bytes, the words that are looked up unmerged.
const longestWhole = 256

// whole returns the token that is exactly word.
func (e *bpe) whole(word string) (int32, bool) {
	if len(word) > longestWhole {
		return 0, false
	}
	var buf [2 * longestWhole]byte // the alphabet's characters take at most two bytes
	encoded := buf[:0]
	for i := range len(word) {
		encoded = append(encoded, alphabet[word[i]]...)
	}
	id, ok := e.vocab.plain[string(encoded)]
	return id, ok
}
