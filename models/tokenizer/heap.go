package tokenizer

import (
	"slices"
	"sync"
)

// pair is two neighbouring symbols that may merge. Smaller keys merge first;
// at equal keys the leftmost does.
type pair struct {
	key         int32
	left, right int32 // indices of the symbols
	size        int32 // bytes both had when the pair was found: else it is stale
	id          int32 // the symbol they make
}

func (a pair) before(b pair) bool {
	return a.key < b.key || a.key == b.key && a.left < b.left
}

// queue is a binary heap of pairs. (container/heap would box each of them.)
type queue []pair

func (q *queue) push(p pair) {
	h := append(*q, p)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !p.before(h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = p
	*q = h
}

func (q *queue) pop() pair {
	h := *q
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(last) {
			break
		}
		h[i] = h[child]
		i = child
	}
	if len(h) > 0 {
		h[i] = last
	}
	*q = h
	return top
}

// symbol is a stretch of the text being merged, in a linked list.
type symbol struct {
	prev, next int32 // -1 at the ends
	start      int32 // byte offset in the text
	size       int32 // bytes; 0 once merged into its left neighbour
	id         int32 // -1 for none
}

// chain is the working memory of one merge.
type chain struct {
	symbols []symbol
	pairs   queue
}

// put gives c back to a pool, unless it has grown to what few words need.
func (c *chain) put(pool *sync.Pool) {
	const most = 4096 // symbols
	if cap(c.symbols) <= most {
		pool.Put(c)
	}
}

// reset empties the chain and makes room for n symbols.
func (c *chain) reset(n int) {
	c.symbols, c.pairs = slices.Grow(c.symbols[:0], n), slices.Grow(c.pairs[:0], n)
}

// add appends a symbol to the list.
func (c *chain) add(start, size int, id int32) {
	n := int32(len(c.symbols))
	if n > 0 {
		c.symbols[n-1].next = n
	}
	c.symbols = append(c.symbols, symbol{prev: n - 1, next: -1, start: int32(start), size: int32(size), id: id})
}

// merge joins neighbours, best pair first, until none is left. find reports
// whether and how two symbols merge.
func (c *chain) merge(find func(a, b *symbol) (key, id int32, ok bool)) {
	propose := func(l, r int32) {
		if l < 0 || r < 0 {
			return
		}
		a, b := &c.symbols[l], &c.symbols[r]
		if key, id, ok := find(a, b); ok {
			c.pairs.push(pair{key: key, left: l, right: r, size: a.size + b.size, id: id})
		}
	}
	for i := 1; i < len(c.symbols); i++ {
		propose(int32(i-1), int32(i))
	}
	for len(c.pairs) > 0 {
		p := c.pairs.pop()
		l, r := &c.symbols[p.left], &c.symbols[p.right]
		if l.size == 0 || r.size == 0 || l.size+r.size != p.size {
			continue
		}
		l.size, l.id, l.next = p.size, p.id, r.next
		r.size = 0
		if r.next >= 0 {
			c.symbols[r.next].prev = p.left
		}
		propose(l.prev, p.left)
		propose(p.left, l.next)
	}
}
