package grammar

import "github.com/lutra-lm/lutra/grammar/regex"

// Single makes the grammar of the texts that one expression matches. It returns
// the errors of New.
func Single(arena *regex.Arena, e regex.Expr) (*Grammar, error) {
	return New(arena, single{e}, 0)
}

type single struct{ regex.Expr }

func (s single) Terminal(Symbol) (regex.Expr, bool) { return s.Expr, true }

func (s single) Alternatives(Symbol) [][]Symbol { return nil }
