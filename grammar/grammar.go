package grammar

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/regex"
)

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

// mostInterned bounds the states that are remembered, and the stacks: with more, all are
// forgotten.
const mostInterned = 1 << 15

// mostSteps bounds the work of one answer, such as that of a mask.
const mostSteps = 1 << 23

// Grammar is rules in use. It may be used by several goroutines; they take turns.
//
// It has many methods, since an automaton that is worked out as it is read needs all of it in
// each: they stand in the files of what they find out (closure, stacks, states, masks).
type Grammar struct {
	mu      sync.Mutex
	budget  *budget.Budget
	arena   *regex.Arena
	source  Rules
	differ  func(Symbol) bool // that of Lists, or nil
	class   *[256]uint8
	single  []int16 // by class: its one byte, or -1
	start   *State
	refused *State // where no text may go on
	bottom  *stack
	nothing *stack
	err     error
	wears   int64 // bytes beyond which it is worn, those that can be forgotten apart
	worn    atomic.Bool
	memo    memo
	scratch scratch
}

// memo holds what has been found out and can be forgotten.
type memo struct {
	rules   map[Symbol]*rule
	stacks  map[string]*stack
	states  map[string]*State
	kept    int // bytes of the budget that the three maps, and closures, hold
	cleared atomic.Uint64
	ids     uint64
}

// scratch is memory for one step.
type scratch struct {
	key    []byte
	path   []*State
	found  []config
	popped []*stack
}

// New makes a grammar of rules over an arena, which it freezes and owns from then on; so
// it does the arena's budget. Errors: ErrLeft, and those of the budget.
func New(arena *regex.Arena, rules Rules, start Symbol) (*Grammar, error) {
	arena.Freeze()
	g := &Grammar{budget: arena.Budget(), arena: arena, source: rules, class: arena.Class()}
	if l, ok := rules.(Lists); ok {
		g.differ = l.Differ()
	}
	g.forget()
	g.single = singles(g.class, arena.Classes())
	g.refused = &State{g: g}
	g.nothing = g.intern(false, nil)
	g.bottom = g.intern(true, nil)
	c := g.closure(g.intern(false, []frame{{start, g.bottom}}))
	if err := g.fault(); err != nil {
		return nil, err
	}
	g.start = g.state(c.accepts, c.configs)
	g.wears = (g.lasting() + g.budget.Bytes()) / 2
	return g, g.fault()
}

// Worn reports whether so much has been found out about the grammar that it should be
// made anew rather than used for further texts.
func (g *Grammar) Worn() bool { return g.worn.Load() }

// Budget returns what the grammar is charged to. Whoever keeps what it has said of the
// grammar's texts may charge that too.
func (g *Grammar) Budget() *budget.Budget { return g.budget }

// Cleared counts how often the grammar has forgotten its states: whoever keeps some of
// them should do likewise.
func (g *Grammar) Cleared() uint64 { return g.memo.cleared.Load() }

// lock begins an answer, which takes so much work at most. pause, if it is not nil, is
// called now and then.
func (g *Grammar) lock(pause func()) {
	g.mu.Lock()
	g.budget.Begin("find what may follow", mostSteps, pause)
}

// unlock ends what has found out more about the grammar.
func (g *Grammar) unlock() {
	g.budget.OnRest(nil)
	g.worn.Store(g.fault() != nil || g.lasting() > g.wears)
	g.mu.Unlock()
}

// lasting returns the bytes that cannot be given back by forgetting.
func (g *Grammar) lasting() int64 { return g.budget.Held() - int64(g.memo.kept) }

// fault returns why g is of no use any more.
func (g *Grammar) fault() error {
	if g.err == nil {
		g.err = g.arena.Err()
	}
	return g.err
}

// work charges steps, and reports whether they may be done.
func (g *Grammar) work(steps int) bool {
	if err := g.budget.Work(steps); err != nil && g.err == nil {
		g.err = err
	}
	return g.err == nil
}

// keep charges bytes that are given back when they are forgotten.
func (g *Grammar) keep(bytes int) {
	g.memo.kept += bytes
	if err := g.budget.Hold(bytes); err != nil && g.err == nil {
		g.err = err
	}
}

// crowded reports whether it is time to forget.
func (g *Grammar) crowded() bool {
	most := g.budget.Bytes()
	return len(g.memo.states) > mostInterned || len(g.memo.stacks) > mostInterned ||
		int64(g.memo.kept) > most/16 && g.budget.Held() > most/4*3
}

// forget drops what is interned, so that memory is bounded: states that are in use
// stay what they are.
func (g *Grammar) forget() {
	for _, s := range g.memo.states {
		if !s.Ended() {
			for i := range s.next {
				s.next[i].Store(nil)
			}
		}
	}
	for _, s := range g.memo.stacks {
		s.closed = nil
	}
	g.memo.rules, g.memo.stacks, g.memo.states = map[Symbol]*rule{}, map[string]*stack{}, map[string]*State{}
	g.budget.Release(g.memo.kept)
	g.memo.kept = 0
	g.memo.cleared.Add(1)
}

// Start returns where a text begins.
func (g *Grammar) Start() *State { return g.start }
