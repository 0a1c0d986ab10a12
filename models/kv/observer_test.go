package kv

import (
	"fmt"
	"slices"
	"testing"
)

// told holds an observer's picture of an index: the parent and the tokens of each block.
type told map[int32]toldBlock

type toldBlock struct {
	parent int32
	tokens []int32
}

// Stored implements Observer.
func (o told) Stored(block, parent int32, _ *Root, tokens []int32) {
	_, known := o[block]
	if _, ok := o[parent]; known || !ok && parent >= 0 {
		panic(fmt.Sprintf("block %d is stored behind %d: it is there already, or its parent is not", block, parent))
	}
	o[block] = toldBlock{parent, slices.Clone(tokens)}
}

// Removed implements Observer.
func (o told) Removed(block int32) {
	if _, ok := o[block]; !ok {
		panic(fmt.Sprintf("block %d is removed, which was not there", block))
	}
	delete(o, block)
	for b, m := range o {
		if m.parent == block {
			panic(fmt.Sprintf("block %d is removed before %d, which continues it", block, b))
		}
	}
}

// Cleared implements Observer.
func (o told) Cleared() { clear(o) }

// verify compares what an observer was told with the index.
func (o told) verify(t *testing.T, c *Cache) {
	t.Helper()
	if len(o) != c.index.size() {
		t.Fatalf("the observer knows %d blocks of %d", len(o), c.index.size())
	}
	for b, m := range o {
		if got := &c.pool.blocks[b]; !got.indexed || max(got.parent, none) != m.parent || !slices.Equal(c.index.tokensOf(b), m.tokens) {
			t.Fatalf("the observer knows block %d as %+v, it is %+v with tokens %v", b, m, *got, c.index.tokensOf(b))
		}
	}
}

// A cache that is emptied is told of at once, unless sequences keep some of its blocks.
func TestForgettingIsTold(t *testing.T) {
	h := newHistory(t, F16, ^uint64(0))
	cleared := 0
	h.c.index.observer = counting{h.told, &cleared}
	for _, keep := range []bool{false, true} {
		h.open(nil)
		h.grow(0, []int32{1, 2, 3, 4, 5, 6, 7, 8})
		h.seqs[0].Seal(h.toks[0])
		if keep {
			h.seqs[0].Truncate(4)
			h.toks[0] = h.toks[0][:4]
		} else {
			h.release(0)
		}
		h.c.Forget()
		h.verify()
		want := 0
		if keep {
			want = 1
		}
		if len(h.told) != want || cleared != 1 {
			t.Errorf("keeping a block: %v; the observer knows %d blocks and was told %d times that all are gone", keep, len(h.told), cleared)
		}
	}
}

// counting counts how often everything goes.
type counting struct {
	told
	cleared *int
}

// Cleared implements Observer.
func (o counting) Cleared() {
	*o.cleared++
	o.told.Cleared()
}

// A cold cache finds nothing, and so has nothing to tell.
func TestAColdCacheTellsNothing(t *testing.T) {
	c, err := New(tinyShape, Options{BlockLen: 2, Blocks: 4, Cold: true})
	if err != nil {
		t.Fatal(err)
	}
	o := told{}
	c.Observe(o)
	s := c.Open(nil)
	if err := s.Grow(4); err != nil {
		t.Fatal(err)
	}
	s.Seal([]int32{1, 2, 3, 4})
	if len(o) > 0 {
		t.Errorf("it tells of %d blocks", len(o))
	}
}
