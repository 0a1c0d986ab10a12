package kvevents

import (
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/models/kv"
)

// kind says what has happened to a block, or to all of them.
type kind uint8

const (
	undone kind = iota // nothing: it was taken back
	stored
	removed
	cleared
)

// change is something that has happened to a cache's index.
type change struct {
	kind   kind
	block  int32
	parent int32    // stored: the block before, or negative
	root   *kv.Root // stored: of its prefix; nil: the model's own
	tokens []int32  // stored
}

// feed gathers the changes of one cache until they are taken. It is a kv.Observer.
type feed struct {
	model string
	wake  chan<- struct{} // capacity 1

	mu      sync.Mutex
	changes []change
	waiting map[int32]int // block → where in changes it is stored
	undone  int           // of changes

	hashes map[int32]uint64 // of blocks as they have been published; the publisher's alone
}

func newFeed(model string, wake chan<- struct{}) *feed {
	return &feed{model: model, wake: wake, waiting: map[int32]int{}, hashes: map[int32]uint64{}}
}

// Stored implements kv.Observer.
func (f *feed) Stored(block, parent int32, root *kv.Root, tokens []int32) {
	f.mu.Lock()
	f.waiting[block] = len(f.changes)
	f.changes = append(f.changes, change{stored, block, parent, root, slices.Clone(tokens)})
	f.mu.Unlock()
	f.poke()
}

// Removed implements kv.Observer. A block that nobody has been told of is forgotten.
func (f *feed) Removed(block int32) {
	f.mu.Lock()
	if at, ok := f.waiting[block]; ok {
		delete(f.waiting, block)
		f.changes[at] = change{}
		if f.undone++; f.undone > len(f.changes)/2 {
			f.compact()
		}
	} else {
		f.changes = append(f.changes, change{kind: removed, block: block})
	}
	f.mu.Unlock()
	f.poke()
}

// Cleared implements kv.Observer.
func (f *feed) Cleared() {
	f.mu.Lock()
	clear(f.waiting)
	f.changes, f.undone = append(f.changes[:0], change{kind: cleared}), 0
	f.mu.Unlock()
	f.poke()
}

// compact drops what was taken back. Locked.
func (f *feed) compact() {
	f.changes = slices.DeleteFunc(f.changes, func(c change) bool { return c.kind == undone })
	f.undone = 0
	for i, c := range f.changes {
		if c.kind == stored {
			f.waiting[c.block] = i
		}
	}
}

// poke wakes the publisher.
func (f *feed) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take gives the changes since the last call.
func (f *feed) take() []change {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.changes
	f.changes, f.undone = nil, 0
	clear(f.waiting)
	return all
}
