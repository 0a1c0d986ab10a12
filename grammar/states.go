package grammar

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// sortConfigs sorts by expression.
func sortConfigs(configs []config) {
	slices.SortFunc(configs, func(a, b config) int { return cmp.Compare(a.expr, b.expr) })
}

// The bytes that are kept for a state, each of its configs, its key included, and each
// class of bytes.
const (
	stateBytes = 192
	pairBytes  = 32
	classBytes = 8
)

// state interns what has been read, of configs in order.
func (g *Grammar) state(accepts bool, pairs []config) *State {
	if len(pairs) == 0 && !accepts {
		return g.refused
	}
	g.scratch.key = append(g.scratch.key[:0], 0)
	if accepts {
		g.scratch.key[0] = 1
	}
	for _, p := range pairs {
		g.scratch.key = binary.LittleEndian.AppendUint32(g.scratch.key, uint32(p.expr))
		g.scratch.key = binary.LittleEndian.AppendUint64(g.scratch.key, p.rest.id)
	}
	if s, ok := g.memo.states[string(g.scratch.key)]; ok {
		return s
	}
	g.keep(stateBytes + pairBytes*len(pairs) + classBytes*g.arena.Classes())
	s := &State{g: g, accepts: accepts, configs: slices.Clone(pairs), next: make([]atomic.Pointer[State], g.arena.Classes())}
	if len(pairs) == 0 {
		for i := range s.next {
			s.next[i].Store(g.refused)
		}
	}
	for _, p := range pairs {
		s.room = max(s.room, g.arena.Room(p.expr))
		s.differ = s.differ || g.behindItem(p.rest)
	}
	g.memo.states[string(g.scratch.key)] = s
	return s
}

// step returns the state after a byte of a class.
func (g *Grammar) step(s *State, class uint8) *State {
	if g.fault() != nil || !g.work(1+len(s.configs)) {
		return g.refused
	}
	if g.crowded() {
		g.forget()
	}
	found, popped, accepts := g.scratch.found[:0], g.scratch.popped[:0], false
	for _, p := range s.configs {
		e := g.arena.Next(p.expr, int(class))
		if e == regex.None {
			continue
		}
		if !g.arena.Ends(e) {
			found = append(found, config{e, p.rest})
		}
		if g.arena.Nullable(e) {
			popped = append(popped, p.rest)
		}
	}
	if len(popped) > 0 {
		c := g.closure(g.join(popped))
		accepts = c.accepts
		found = append(found, c.configs...)
	}
	g.scratch.found, g.scratch.popped = found, popped
	next := g.refused
	if pairs := g.merge(found); g.fault() == nil {
		next = g.state(accepts, pairs)
	}
	if g.fault() == nil {
		s.next[class].Store(next)
	}
	return next
}
