package grammar

import (
	"slices"
	"unicode/utf8"
)

// Special begins the text of a token that has none: its name follows. No other text
// has this byte, so that a grammar has such tokens only where it names them.
const Special = "\xff"

// Vocabulary holds the texts of a tokenizer's tokens as tries. It is immutable.
type Vocabulary struct {
	size   int
	depth  int // bytes of the longest token
	slices []slice
}

// slice holds some of the tokens: tokens of up to room characters of regex.Plain, which
// need not be examined where that many may follow; and, with room 0, all others.
type slice struct {
	room  int
	all   Mask
	nodes []node
	same  map[int32]int32 // the next token of the same text
	depth int
}

// node is a node of a trie, in depth-first order.
type node struct {
	token int32  // that ends here, or -1
	size  int32  // nodes of its subtree, itself included
	depth uint16 // of its parent
	b     byte
}

// mostToken bounds the bytes of a token that may be generated.
const mostToken = 1 << 11

// rooms lists the slices of tokens that hold plain characters alone.
var rooms = []int{10, 30, mostToken}

// NewVocabulary makes the tries of a vocabulary of size tokens. Tokens without text
// are never allowed.
func NewVocabulary(size int, text func(id int32) []byte) *Vocabulary {
	v := &Vocabulary{size: size}
	parts := make([][]int32, len(rooms)+1)
	for id := range int32(size) {
		if b := text(id); len(b) > 0 && len(b) < mostToken {
			i := len(rooms)
			if n := plainChars(b); n > 0 {
				i, _ = slices.BinarySearch(rooms, n)
			}
			parts[i] = append(parts[i], id)
		}
	}
	for i, ids := range parts {
		s := slice{all: make(Mask, v.Words())}
		if i < len(rooms) {
			s.room = rooms[i]
		}
		for _, id := range ids {
			s.all[id/64] |= 1 << (id % 64)
		}
		s.build(ids, text)
		v.depth = max(v.depth, s.depth)
		v.slices = append(v.slices, s)
	}
	return v
}

// Words returns the length of a Mask of v.
func (v *Vocabulary) Words() int { return (v.size + 63) / 64 }

// Has reports whether a token may ever be allowed.
func (v *Vocabulary) Has(id int32) bool {
	if id < 0 || int(id) >= v.size {
		return false
	}
	for i := range v.slices {
		if v.slices[i].all.Has(id) {
			return true
		}
	}
	return false
}

// Size returns the number of tokens.
func (v *Vocabulary) Size() int { return v.size }

// plainChars returns the number of characters of a text of regex.Plain alone, else 0.
func plainChars(b []byte) int {
	n := 0
	for len(b) > 0 {
		c, size := utf8.DecodeRune(b)
		if c == utf8.RuneError && size < 2 || c < ' ' || c == '"' || c == '\\' || c == 0x7f || c == 0x2028 || c == 0x2029 {
			return 0
		}
		b = b[size:]
		n++
	}
	return n
}

func (s *slice) build(ids []int32, text func(id int32) []byte) {
	ids = slices.Clone(ids)
	slices.SortStableFunc(ids, func(a, b int32) int { return slices.Compare(text(a), text(b)) })
	var path []int32 // nodes from the root to the latest
	var last []byte
	for _, id := range ids {
		b := text(id)
		common := 0
		for common < min(len(last), len(b)) && last[common] == b[common] {
			common++
		}
		if common == len(b) && len(last) == len(b) { // the same text again
			s.again(s.nodes[path[len(path)-1]].token, id)
			continue
		}
		path = path[:common]
		for i := common; i < len(b); i++ {
			path = append(path, int32(len(s.nodes)))
			s.nodes = append(s.nodes, node{token: -1, depth: uint16(i), b: b[i]})
		}
		s.nodes[len(s.nodes)-1].token = id
		s.depth = max(s.depth, len(b))
		last = b
	}
	// From the end on, a subtree ends at the next node that is no deeper.
	next := make([]int32, s.depth+1)
	for i := range next {
		next[i] = int32(len(s.nodes))
	}
	for i := len(s.nodes) - 1; i >= 0; i-- {
		n := &s.nodes[i]
		end := int32(len(s.nodes))
		for d := 0; d <= int(n.depth); d++ {
			end = min(end, next[d])
		}
		n.size = end - int32(i)
		next[n.depth] = int32(i)
	}
}

func (s *slice) again(first, id int32) {
	if s.same == nil {
		s.same = map[int32]int32{}
	}
	for {
		next, ok := s.same[first]
		if !ok {
			break
		}
		first = next
	}
	s.same[first] = id
}
