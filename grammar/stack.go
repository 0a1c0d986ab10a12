package grammar

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// The bytes that are kept for a stack and each of its frames, its key included.
const (
	stackBytes = 160
	frameBytes = 32
)

func (g *Grammar) intern(empty bool, frames []frame) *stack {
	g.scratch.key = append(g.scratch.key[:0], 0)
	if empty {
		g.scratch.key[0] = 1
	}
	for _, f := range frames {
		g.scratch.key = binary.LittleEndian.AppendUint32(g.scratch.key, uint32(f.symbol))
		g.scratch.key = binary.LittleEndian.AppendUint64(g.scratch.key, f.rest.id)
	}
	if s, ok := g.memo.stacks[string(g.scratch.key)]; ok {
		return s
	}
	g.keep(stackBytes + frameBytes*len(frames))
	g.memo.ids++
	s := &stack{id: g.memo.ids, empty: empty, frames: slices.Clone(frames)}
	g.memo.stacks[string(g.scratch.key)] = s
	return s
}

// push puts a symbol on top of s.
func (g *Grammar) push(symbol Symbol, s *stack) *stack {
	return g.intern(false, []frame{{symbol, s}})
}

// join returns the stacks of all of sets, whose order it changes.
func (g *Grammar) join(sets []*stack) *stack {
	if len(sets) == 1 {
		return sets[0]
	}
	slices.SortFunc(sets, func(a, b *stack) int { return cmp.Compare(a.id, b.id) })
	if sets = slices.Compact(sets); len(sets) == 1 {
		return sets[0]
	}
	empty, n := false, 0
	for _, s := range sets {
		empty = empty || s.empty
		n += len(s.frames)
	}
	if !g.work(n) {
		return g.nothing
	}
	frames := make([]frame, 0, n)
	for _, s := range sets {
		frames = append(frames, s.frames...)
	}
	slices.SortFunc(frames, func(a, b frame) int {
		if a.symbol != b.symbol {
			return cmp.Compare(a.symbol, b.symbol)
		}
		return cmp.Compare(a.rest.id, b.rest.id)
	})
	return g.intern(empty, slices.Compact(frames))
}
