package grammar

import (
	"context"
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

// Lists is implemented by Rules with lists whose items differ. Items are strings,
// numbers and names, as JSON writes them, in one way each; no grammar can remember the items
// that have been written.
type Lists interface {
	// Differ reports of a symbol whether it follows an item of such a list; nil: there
	// are none.
	Differ() func(Symbol) bool
}

// mostInterned bounds the states that are remembered, and the stacks: with more, all are
// forgotten.
const mostInterned = 1 << 15

// mostSteps bounds the work of one answer, such as a mask.
const mostSteps = 1 << 23

// ledger charges the budget of a grammar, and keeps the error that ends its use.
type ledger struct {
	budget *budget.Budget
	arena  *regex.Arena // which charges the same budget
	kept   int          // bytes that the memo's maps, and closures, hold
	err    error
}

// Grammar is rules in use, an automaton that is built as texts are read. It may be used by several goroutines; they take
// turns.
type Grammar struct {
	mu sync.Mutex
	ledger
	source  Rules
	differ  func(Symbol) bool // Lists' method, or nil
	class   *[256]uint8
	single  []int16 // by class: its one byte, or -1
	start   *State
	refused *State // where no text may go on
	bottom  *stack
	nothing *stack
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

// lock begins an answer, which takes so much work at most. pause, if it is not nil, is
// called now and then.
func (g *Grammar) lock(pause func()) {
	g.mu.Lock()
	g.budget.Begin(context.Background(), "find what may follow", mostSteps, pause)
}

// unlock ends what has found out more about the grammar.
func (g *Grammar) unlock() {
	g.budget.OnRest(nil)
	g.worn.Store(g.fault() != nil || g.lasting() > g.wears)
	g.mu.Unlock()
}

// lasting returns the bytes that cannot be given back by forgetting.
func (l *ledger) lasting() int64 { return l.budget.Held() - int64(l.kept) }

// fault returns why the grammar is of no use any more.
func (l *ledger) fault() error {
	if l.err == nil {
		l.err = l.arena.Err()
	}
	return l.err
}

// work charges steps, and reports whether they may be done.
func (l *ledger) work(steps int) bool {
	if err := l.budget.Work(steps); err != nil && l.err == nil {
		l.err = err
	}
	return l.err == nil
}

// keep charges bytes that are given back when they are forgotten.
func (l *ledger) keep(bytes int) {
	l.kept += bytes
	if err := l.budget.Hold(bytes); err != nil && l.err == nil {
		l.err = err
	}
}

// crowded reports whether it is time to forget.
func (g *Grammar) crowded() bool {
	most := g.budget.Bytes()
	return len(g.memo.states) > mostInterned || len(g.memo.stacks) > mostInterned ||
		int64(g.kept) > most/16 && g.budget.Held() > most/4*3
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
	g.budget.Release(g.kept)
	g.kept = 0
	g.memo.cleared.Add(1)
}

// rule holds what is known of a symbol.
type rule struct {
	expr         regex.Expr
	terminal     bool
	nullable     bool       // it may stand for the empty text
	alternatives [][]Symbol // of what is no terminal
	height       int        // above all symbols that it may begin with; terminals have 0
}

// closure lists the terminals that may come next above a set of stacks.
type closure struct {
	accepts bool
	configs []config
}

// config is a terminal as far as it has been read, with what follows it.
type config struct {
	expr regex.Expr
	rest *stack
}

// stack stands for a set of stacks: whether the empty one is among them, and the others by the
// symbol on top. It is never changed.
type stack struct {
	id     uint64
	empty  bool
	frames []frame // in order, each once
	closed *closure
}

// frame is a symbol with the stacks below it. Several of a set may have one symbol: they
// are joined when it comes to be read. That keeps sets as small as the grammar is, times
// the bytes read, where joining all below would make a set of each subset of them.
type frame struct {
	symbol Symbol
	rest   *stack
}

// State stands for what has been read of a text. It does not change.
type State struct {
	g       *Grammar
	accepts bool
	configs []config
	next    []atomic.Pointer[State] // by class of bytes; nil: not known
	room    int                     // characters of regex.Plain that may follow, whichever they are
	differ  bool                    // an item of a list whose items differ may begin or go on
	many    int                     // such items that it can become, at least; locked
	rules   *State                  // without items, nil where s is that
	items   *items                  // of that list, nil where the text is in none
}

// Accepts reports whether the text may end here.
func (s *State) Accepts() bool { return s.accepts }

// Ended reports whether nothing may follow.
func (s *State) Ended() bool { return len(s.configs) == 0 }

// items holds what has been written of a list whose items differ. It does not change.
type items struct {
	told            []string // those that are whole, in order
	text            string   // of the one that is being written
	whole           bool     // it has ended
	quoted, escaped bool     // it is within a string, after a backslash
	from, to        int      // of told, those that begin with text
}
