package tokenizer

import (
	"strings"
	"sync"
)

// alphabet writes each byte as one printable character, GPT-2's way: printable Latin-1 stands for itself, the rest
// are numbered from U+0100 on (Radford et al., "Language Models are Unsupervised Multitask Learners" §2.2).
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

// merge is the token that a pair of symbols becomes, with its rank.
type merge struct{ rank, id int32 }

// mergeTable is which pairs of symbols merge. A symbol is a token's id, or a number
// from the vocabulary's size on for a string that only merges mention.
type mergeTable struct {
	vocab  *vocab
	merges map[uint64]merge // left<<32 | right
	extra  map[string]int32 // what only merges mention
}

// bpe is byte-level byte-pair encoding.
type bpe struct {
	vocab  *vocab
	pre    preTokenizer
	bytes  [256]int32 // symbol of each byte
	merges mergeTable
	chains sync.Pool // of *chain
}

// newBPE also counts the merges that are no pair of symbols, or repeat one.
func newBPE(v *vocab, pre preTokenizer, merges []string) (e *bpe, odd int) {
	e = &bpe{vocab: v, pre: pre}
	e.chains.New = func() any { return new(chain) }
	e.merges, odd = newMergeTable(v, merges)
	for b, char := range alphabet {
		e.bytes[b] = e.merges.number(char)
	}
	return e, odd
}

// symbol returns the number of text, -1 for none.
func (t *mergeTable) symbol(text string) int32 {
	if id, ok := t.vocab.plain[text]; ok {
		return id
	}
	if id, ok := t.extra[text]; ok {
		return id
	}
	return -1
}

// number returns the number of text, a new one if it has none.
func (t *mergeTable) number(text string) int32 {
	id := t.symbol(text)
	if id < 0 {
		id = int32(len(t.vocab.tokens) + len(t.extra))
		t.extra[text] = id
	}
	return id
}

// newMergeTable also counts the merges that are no pair of symbols, or repeat one.
func newMergeTable(v *vocab, merges []string) (t mergeTable, odd int) {
	t = mergeTable{vocab: v, merges: make(map[uint64]merge, len(merges)), extra: map[string]int32{}}
	for rank, m := range merges {
		// The first character may itself be a space.
		cut := strings.IndexByte(m[min(1, len(m)):], ' ') + 1
		if cut <= 0 {
			odd++
			continue
		}
		left, right := m[:cut], m[cut+1:]
		key := uint64(t.number(left))<<32 | uint64(t.number(right))
		if _, dup := t.merges[key]; dup {
			odd++
			continue
		}
		t.merges[key] = merge{int32(rank), t.number(left + right)}
	}
	return t, odd
}

// missing returns how many of the bytes that texts have no token can express. Published
// vocabularies lack some of the others: control characters, and bytes of no UTF-8.
func (e *bpe) missing() (n int) {
	for b, id := range e.bytes {
		if !e.vocab.valid(id) && written(byte(b)) {
			n++
		}
	}
	return n
}

// written reports whether texts have a byte: in ASCII, or in UTF-8 of planes with characters.
func written(b byte) bool {
	switch {
	case b < ' ':
		return b == '\t' || b == '\n' || b == '\r'
	case b < 0x7f:
		return true
	}
	return b >= 0x80 && b <= 0xf0 && b != 0xc0 && b != 0xc1 || b == 0xf3 || b == 0xf4
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
		if id, ok := e.tokenOf(word); ok {
			return append(dst, id)
		}
	}
	c.reset(len(word))
	for i := range len(word) {
		c.add(i, 1, e.bytes[word[i]])
	}
	c.merge(e.merges.find)
	for i := int32(0); i >= 0; i = c.symbols[i].next {
		s := &c.symbols[i]
		if e.vocab.valid(s.id) {
			dst = append(dst, s.id)
			continue
		}
		dst = e.vocab.appendBytes(dst, &e.bytes, word[s.start:s.start+s.size])
	}
	return dst
}

// appendBytes appends the tokens of the bytes of text, or for a byte without the unknown one.
func (v *vocab) appendBytes(dst []int32, tokens *[256]int32, text string) []int32 {
	for _, b := range []byte(text) {
		if id := tokens[b]; v.valid(id) {
			dst = append(dst, id)
		} else if v.unk >= 0 {
			dst = append(dst, v.unk)
		}
	}
	return dst
}

func (t *mergeTable) find(a, b *symbol) (key, id int32, ok bool) {
	m, ok := t.merges[uint64(a.id)<<32|uint64(b.id)]
	return m.rank, m.id, ok
}

// longestWhole bounds, in bytes, the words that are looked up unmerged.
const longestWhole = 256

// tokenOf returns the token that is exactly word.
func (e *bpe) tokenOf(word string) (int32, bool) {
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
