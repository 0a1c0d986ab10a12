package grammar

import (
	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// New makes a grammar of rules over an arena. It freezes the arena and owns it from then on,
// with its budget. It returns ErrLeft, and the errors of the budget.
func New(arena *regex.Arena, rules Rules, start Symbol) (*Grammar, error) {
	arena.Freeze()
	g := &Grammar{ledger: ledger{budget: arena.Budget(), arena: arena}, source: rules, class: arena.Class()}
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

// Start returns where a text begins.
func (g *Grammar) Start() *State { return g.start }

// singles returns the byte of each class that has just one, -1 for others.
func singles(class *[256]uint8, classes int) []int16 {
	of := make([]int16, classes)
	seen := make([]bool, classes)
	for b, c := range class {
		of[c] = int16(b)
		if seen[c] {
			of[c] = -1
		}
		seen[c] = true
	}
	return of
}
