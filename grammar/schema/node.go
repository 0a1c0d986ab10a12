package schema

import "github.com/lutra-lm/lutra/grammar/regex"

// node is a combination of schemas that all hold, as a value has to meet it.
type node struct {
	all      subs
	scalar   regex.Expr
	branches []*branch
	possible bool // some value meets it
}

// branch is one way to meet a node by lists and objects.
type branch struct {
	shape *shape

	list     bool
	prefix   []int // nodes of the first items
	rest     int   // node of the others
	fewest   int
	longest  int
	counting *counting    // what contains asks for, nil if nothing
	choices  []regex.Expr // of uniqueItems: all that items may be
	differ   regex.Expr   // of uniqueItems: what items may be, if those are many

	object  bool
	free    bool    // they may stand in any order
	entries []entry // in order
	others  []entry // of names that the entries do not have
	last    []entry // of which one comes after these; none: none has to
	after   []entry // what may follow it
	minimum int
	maximum int
	behind  []behind // each entry, once it is known
}

// entry stands for a property, or all those whose names match.
type entry struct {
	key      regex.Expr // with its quotes
	name     string     // of a property
	names    regex.Expr // of all those, without quotes
	node     int
	required bool
	single   bool // of others: one name, which may be there once
}

// symbol names a terminal or a rule. Its numbers count what has been written.
type symbol struct {
	kind   symbolKind
	node   int
	branch int
	i, n   int
	expr   regex.Expr
}

type symbolKind uint8

const (
	symTerminal symbolKind = iota
	symValue
	symItem // one more item, i of them written; n: how many meet contains, or which have been used
	symItems
	symEntry // one more property, from entry i on; n of them written
	symEntries
)

// behind counts entries from one on.
type behind struct{ needed, possible int }

// counting tracks what contains asks for.
type counting struct {
	all   []contained
	nodes [][]int // by index, and by the set of demands that an item is counted for; -1: it cannot be
	done  map[[2]int]bool
}

// cap returns the number from which on d does not count.
func (d *contained) cap() int {
	if d.most != regex.Infinite {
		return d.most
	}
	return d.least
}

// The others that are told apart, by bits of a symbol after those that number the
// next entry.
const (
	looseAt   = 20
	mostLoose = 62 - looseAt
	nextEntry = 1<<looseAt - 1
)

// finished is the bit that says that an entry of branch.last has been written. It has to
// be the last of its name, so that only others follow.
const finished = 1 << 62
