package grammar

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// ErrComplex says that a grammar needs more memory or time than it may have.
var ErrComplex = fmt.Errorf("grammar: %w", regex.ErrSize)

// ErrLeft says that a rule begins with itself.
var ErrLeft = errors.New("grammar: a rule begins with itself")

// Symbol is a terminal or a rule, numbered by its Rules.
type Symbol int32

// Rules describes a grammar. It may be asked for symbols that it has not named
// before, so that rules which count need not all exist.
type Rules interface {
	// Terminal is the expression of a terminal; false: s is a rule.
	Terminal(s Symbol) (regex.Expr, bool)
	// Alternatives are the sequences that a rule stands for.
	Alternatives(s Symbol) [][]Symbol
}

// The bounds of a grammar in use.
const (
	mostConfigs  = 1 << 14 // pairs in a state
	mostDepth    = 1 << 12 // rules that begin one another
	mostInterned = 1 << 15 // states, and stacks: more are forgotten
)

// Grammar is rules in use. It may be used by several goroutines; they take turns.
type Grammar struct {
	mu      sync.Mutex
	arena   *regex.Arena
	rules   Rules
	class   *[256]uint8
	single  []int16 // by class: its one byte, or -1
	start   *State
	refused *State // where no text may go on
	bottom  *stack
	nothing *stack
	stacks  map[string]*stack
	states  map[string]*State
	unions  map[[2]*stack]*stack
	ids     uint64
	depth   int
	key     []byte
	pairs   []config
	path    []*State
	err     error
	worn    atomic.Bool
	steps   uint   // worked out so far
	pause   func() // called after every pauseAfter of them, or nil
}

// pauseAfter is how many transitions are worked out between pauses.
const pauseAfter = 64

// resting lets pause be called during long work, until the result is called. Locked.
func (g *Grammar) resting(pause func()) (end func()) {
	g.pause = pause
	return func() { g.pause = nil }
}

// New makes a grammar of rules over an arena, which it freezes and owns from then
// on. Errors: ErrComplex, ErrLeft.
func New(arena *regex.Arena, rules Rules, start Symbol) (*Grammar, error) {
	arena.Freeze()
	g := &Grammar{arena: arena, rules: rules, class: arena.Class()}
	g.forget()
	g.single = singles(g.class, arena.Classes())
	g.refused = &State{g: g}
	g.nothing = g.intern(false, nil)
	g.bottom = g.intern(true, nil)
	c := g.closure(g.intern(false, []frame{{start, g.bottom}}))
	g.start = g.state(c.accepts, slices.Clone(c.configs))
	return g, g.fault()
}

// Worn reports whether so much has been found out about the grammar that it should be
// made anew rather than used for further texts.
func (g *Grammar) Worn() bool { return g.worn.Load() }

// unlock ends what has found out more about the grammar.
func (g *Grammar) unlock() {
	g.worn.Store(g.fault() != nil || g.arena.Full())
	g.mu.Unlock()
}

// fault is why g is of no use any more.
func (g *Grammar) fault() error {
	if g.err == nil && g.arena.Err() != nil {
		g.err = ErrComplex
	}
	return g.err
}

// forget drops what is interned, so that memory is bounded: states that are in use
// stay what they are.
func (g *Grammar) forget() {
	for _, s := range g.states {
		if !s.Ended() {
			for i := range s.next {
				s.next[i].Store(nil)
			}
		}
	}
	for _, s := range g.stacks {
		s.closed = nil
	}
	g.stacks, g.states, g.unions = map[string]*stack{}, map[string]*State{}, map[[2]*stack]*stack{}
}

// Start is where a text begins.
func (g *Grammar) Start() *State { return g.start }

// stack is a set of stacks: whether the empty one is among them, and the others by
// the symbol on top. It is never changed.
type stack struct {
	id     uint64
	empty  bool
	frames []frame // by symbol, each once
	closed *closure
}

// frame is a symbol with the stacks below it.
type frame struct {
	symbol Symbol
	rest   *stack
}

// closure is the terminals that may come next above a set of stacks.
type closure struct {
	accepts bool
	configs []config
}

// config is a terminal as far as it has been read, with what follows it.
type config struct {
	expr regex.Expr
	rest *stack
}

func (g *Grammar) intern(empty bool, frames []frame) *stack {
	g.key = append(g.key[:0], 0)
	if empty {
		g.key[0] = 1
	}
	for _, f := range frames {
		g.key = binary.LittleEndian.AppendUint32(g.key, uint32(f.symbol))
		g.key = binary.LittleEndian.AppendUint64(g.key, f.rest.id)
	}
	if s, ok := g.stacks[string(g.key)]; ok {
		return s
	}
	g.ids++
	s := &stack{id: g.ids, empty: empty, frames: slices.Clone(frames)}
	g.stacks[string(g.key)] = s
	return s
}

// push puts a sequence on top of s.
func (g *Grammar) push(sequence []Symbol, s *stack) *stack {
	for _, symbol := range slices.Backward(sequence) {
		s = g.intern(false, []frame{{symbol, s}})
	}
	return s
}

// union is the stacks of both.
func (g *Grammar) union(a, b *stack) *stack {
	switch {
	case a == b || b == g.nothing:
		return a
	case a == g.nothing:
		return b
	case a.id > b.id:
		a, b = b, a
	}
	if s, ok := g.unions[[2]*stack{a, b}]; ok {
		return s
	}
	var frames []frame
	for x, y := a.frames, b.frames; len(x) > 0 || len(y) > 0; {
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].symbol < y[0].symbol:
			frames = append(frames, x[0])
			x = x[1:]
		case len(x) == 0 || y[0].symbol < x[0].symbol:
			frames = append(frames, y[0])
			y = y[1:]
		default:
			frames = append(frames, frame{x[0].symbol, g.union(x[0].rest, y[0].rest)})
			x, y = x[1:], y[1:]
		}
	}
	s := g.intern(a.empty || b.empty, frames)
	g.unions[[2]*stack{a, b}] = s
	return s
}

// closure finds the terminals that may come next above s.
func (g *Grammar) closure(s *stack) *closure {
	if s.closed != nil {
		return s.closed
	}
	if g.depth++; g.depth > mostDepth {
		g.err = ErrLeft
	}
	defer func() { g.depth-- }()
	c := &closure{accepts: s.empty}
	var at map[regex.Expr]int
	add := func(k config) {
		if at == nil {
			at = map[regex.Expr]int{}
		}
		if i, ok := at[k.expr]; ok {
			c.configs[i].rest = g.union(c.configs[i].rest, k.rest)
			return
		}
		at[k.expr] = len(c.configs)
		c.configs = append(c.configs, k)
	}
	include := func(s *stack) {
		k := g.closure(s)
		c.accepts = c.accepts || k.accepts
		for _, k := range k.configs {
			add(k)
		}
	}
	for _, f := range s.frames {
		if g.err != nil || len(c.configs) > mostConfigs {
			break
		}
		if e, ok := g.rules.Terminal(f.symbol); ok {
			if g.arena.Alive(e) {
				add(config{e, f.rest})
			}
			if g.arena.Nullable(e) {
				include(f.rest)
			}
			continue
		}
		for _, sequence := range g.rules.Alternatives(f.symbol) {
			include(g.push(sequence, f.rest))
		}
	}
	if len(c.configs) > mostConfigs && g.err == nil {
		g.err = ErrComplex
	}
	if g.err == nil {
		s.closed = c
	}
	return c
}

// state interns what has been read.
func (g *Grammar) state(accepts bool, pairs []config) *State {
	if len(pairs) == 0 && !accepts {
		return g.refused
	}
	slices.SortFunc(pairs, func(a, b config) int { return cmp.Compare(a.expr, b.expr) })
	g.key = append(g.key[:0], 0)
	if accepts {
		g.key[0] = 1
	}
	for _, p := range pairs {
		g.key = binary.LittleEndian.AppendUint32(g.key, uint32(p.expr))
		g.key = binary.LittleEndian.AppendUint64(g.key, p.rest.id)
	}
	if s, ok := g.states[string(g.key)]; ok {
		return s
	}
	if len(g.states) > mostInterned || len(g.stacks) > mostInterned {
		g.forget()
	}
	s := &State{g: g, accepts: accepts, configs: slices.Clone(pairs), next: make([]atomic.Pointer[State], g.arena.Classes())}
	if len(pairs) == 0 {
		for i := range s.next {
			s.next[i].Store(g.refused)
		}
	}
	for _, p := range pairs {
		s.room = max(s.room, g.arena.Room(p.expr))
	}
	g.states[string(g.key)] = s
	return s
}

// step is the state behind a byte of a class.
func (g *Grammar) step(s *State, class uint8) *State {
	if g.steps++; g.steps%pauseAfter == 0 && g.pause != nil {
		g.pause()
	}
	pairs, accepts := g.pairs[:0], false
	add := func(e regex.Expr, rest *stack) {
		for i := range pairs {
			if pairs[i].expr == e {
				pairs[i].rest = g.union(pairs[i].rest, rest)
				return
			}
		}
		pairs = append(pairs, config{e, rest})
	}
	for _, p := range s.configs {
		e := g.arena.Next(p.expr, int(class))
		if e == regex.None {
			continue
		}
		if e != regex.Empty {
			add(e, p.rest)
		}
		if g.arena.Nullable(e) {
			c := g.closure(p.rest)
			accepts = accepts || c.accepts
			for _, k := range c.configs {
				add(k.expr, k.rest)
			}
		}
	}
	if len(pairs) > mostConfigs && g.err == nil {
		g.err = ErrComplex
	}
	g.pairs = pairs
	next := g.refused
	if g.fault() == nil {
		next = g.state(accepts, pairs)
	}
	s.next[class].Store(next)
	return next
}
