package tokenizer

// maxSpecial is the longest text, in bytes, of a special token that is looked
// for. It bounds the work at each byte of a text; real ones are far shorter.
const maxSpecial = 512

// trie finds the texts of special tokens: the leftmost, and there the longest.
type trie struct {
	root  [256]int32       // node after the first byte, 0 for none
	edges map[uint64]int32 // node<<8 | byte → node
	nodes []leaf           // node 0 is no node
}

// leaf is the token that ends at a node.
type leaf struct {
	id      int32 // -1 for nothing
	control bool  // only wanted when special tokens are parsed
}

func (t *trie) insert(text string, id int32, control bool) {
	if text == "" || len(text) > maxSpecial {
		return
	}
	if t.edges == nil {
		t.edges = make(map[uint64]int32)
		t.nodes = []leaf{{id: -1}}
	}
	node := t.root[text[0]]
	if node == 0 {
		node = t.add()
		t.root[text[0]] = node
	}
	for i := 1; i < len(text); i++ {
		key := uint64(node)<<8 | uint64(text[i])
		next, ok := t.edges[key]
		if !ok {
			next = t.add()
			t.edges[key] = next
		}
		node = next
	}
	t.nodes[node] = leaf{id, control}
}

func (t *trie) add() int32 {
	t.nodes = append(t.nodes, leaf{id: -1})
	return int32(len(t.nodes) - 1)
}

// next returns where the first special token at or after from begins, and its id;
// len(text) and -1 when there is none.
func (t *trie) next(text string, from int, parse bool) (at int, id int32) {
	for at = from; at < len(text); at++ {
		if t.root[text[at]] == 0 {
			continue
		}
		if id := t.longest(text[at:], parse); id >= 0 {
			return at, id
		}
	}
	return len(text), -1
}

// longest returns the longest special token that text begins with, -1 for none.
func (t *trie) longest(text string, parse bool) int32 {
	id := int32(-1)
	node := t.root[text[0]]
	for i := 1; ; i++ {
		if l := t.nodes[node]; l.id >= 0 && (parse || !l.control) {
			id = l.id
		}
		if i == len(text) {
			return id
		}
		next, ok := t.edges[uint64(node)<<8|uint64(text[i])]
		if !ok {
			return id
		}
		node = next
	}
}
