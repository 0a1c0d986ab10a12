package search

import (
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// method is a way to spend the candidates of a search, with the state that it keeps while it does.
// A method is written as its paper's algorithm is: it runs from the first fork of the prompt to
// its last candidate. The run that it is given grows beams within the budgets and reports them;
// how the answer is chosen among the candidates is the plan's Select, whatever the method.
type method interface {
	// grow has candidates grow until there are enough of them or a budget is spent, puts them
	// into r.tree and says what has ended it.
	grow(r *searchRun) (tts.StopReason, error)
}

// methodRow makes the method of one search.
type methodRow struct {
	start  func(r *searchRun) method
	scorer func() tts.Scorer // of a method that judges by itself; nil: the plan names the verifier
	// choose returns the rule for plans that name none; nil: a vote, which a verifier's scores weigh.
	choose func(verified bool) scaling.Select
}

// methods has a row for each of scaling.Methods but None. A method's file adds its own.
var methods = map[scaling.Method]methodRow{}
